package main

import (
	"errors"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	sdk "go.temporal.io/sdk/workflow"
)

var buildIDs = temporal.NewSearchAttributeKeyKeywordList("BuildIds")

// Doubling is Register with a mistake.
func Doubling(ctx sdk.Context) ([]int, error) { return kept(ctx, 2) }

// during runs a worker of a build, for which this is the workflow of this name, as long as the function takes.
func (w *world) during(build, name string, definition any, function func()) {
	served := worker.New(w.Client, w.queue, worker.Options{BuildID: build})
	served.RegisterWorkflowWithOptions(definition, sdk.RegisterOptions{Name: name})
	w.must(served.Start())
	defer served.Stop()
	function()
}

func (w *world) told(run client.WorkflowRun) *workflow.WorkflowExecutionInfo {
	return w.described(run).WorkflowExecutionInfo
}

func buildsOf(info *workflow.WorkflowExecutionInfo) []string {
	var builds []string
	for _, point := range info.AutoResetPoints.GetPoints() {
		builds = append(builds, point.BuildId)
	}
	return builds
}

func buildsAreToldByTheirRuns(w *world) {
	run := w.start(client.StartWorkflowOptions{}, Register)
	for number, build := range []string{"one", "two"} {
		w.during(build, "Register", Register, func() {
			for range 2 {
				w.put(run.GetID(), number+1)
				w.values(run.GetID())
			}
		})
	}
	w.equal(buildsOf(w.told(run)), []string{"one", "two"}, "the builds, once each")
	w.equal(w.told(run).MostRecentWorkerVersionStamp.GetBuildId(), "two", "the latest")
	described, err := w.DescribeWorkflow(w, run.GetID(), run.GetRunID())
	w.must(err)
	attribute, _ := described.TypedSearchAttributes.GetKeywordList(buildIDs)
	w.equal(attribute, []string{"unversioned", "unversioned:one", "unversioned:two"}, "the search attribute")

	events := w.events(run.GetID(), run.GetRunID())
	var builds []string
	for _, event := range events {
		if event.EventType == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			builds = append(builds, event.GetWorkflowTaskCompletedEventAttributes().GetWorkerVersion().GetBuildId())
		}
	}
	w.equal(slices.Compact(builds), []string{"one", "two"}, "who has completed the tasks")
	for _, point := range w.told(run).AutoResetPoints.GetPoints() {
		w.equal(point.RunId, run.GetRunID(), "the run of a point")
		task := events[point.FirstWorkflowTaskCompletedId-1].GetWorkflowTaskCompletedEventAttributes()
		w.equal(task.GetWorkerVersion().GetBuildId(), point.BuildId, "the build of the task of a point")
	}
}

func runsGoBackToBeforeABadBuild(w *world) {
	run := w.start(client.StartWorkflowOptions{}, Register)
	w.during("good", "Register", Register, func() {
		w.put(run.GetID(), 1)
		w.equal(w.values(run.GetID()), []int{1}, "by the good one")
	})
	w.during("bad", "Register", Doubling, func() {
		w.put(run.GetID(), 10)
		w.equal(w.values(run.GetID()), []int{2, 20}, "by the bad one")
		w.put(run.GetID(), 100)
		w.equal(w.values(run.GetID()), []int{2, 20, 200}, "by the bad one, once more")
	})
	points := w.told(run).AutoResetPoints.GetPoints()
	w.that(len(points) == 2 && points[1].BuildId == "bad" && points[1].Resettable, "the points", points)
	w.during("mended", "Register", Register, func() {
		again := w.reset(run.GetID(), points[1].RunId, points[1].FirstWorkflowTaskCompletedId)
		w.equal(w.values(run.GetID()), []int{1, 10, 100}, "kept rightly")
		w.equal(buildsOf(w.told(again)), []string{"good", "mended"}, "the builds of the run that was reset")
		w.put(run.GetID(), 0)
		var values []int
		w.must(again.Get(w, &values))
		w.equal(values, []int{1, 10, 100}, "the values")
	})
}

// buildIDsAreKeptInSets is of calls that a Temporal server has turned off: it says so.
func buildIDsAreKeptInSets(w *world) {
	type change = client.UpdateWorkerBuildIdCompatibilityOptions
	update := func(change change) error {
		change.TaskQueue = w.queue
		return w.UpdateWorkerBuildIdCompatibility(w, &change)
	}
	defer w.serve(worker.Options{})()
	info, err := w.WorkflowService().GetSystemInfo(w, &workflowservice.GetSystemInfoRequest{})
	w.must(err)
	err = update(change{Operation: &client.BuildIDOpAddNewIDInNewDefaultSet{BuildID: "1.0"}})
	var denied *serviceerror.PermissionDenied
	if !strings.Contains(info.ServerVersion, "everlog") && errors.As(err, &denied) {
		w.must(w.start(client.StartWorkflowOptions{}, Batch, 1).Get(w, nil))
		return
	}
	w.must(err)
	w.must(update(change{Operation: &client.BuildIDOpAddNewCompatibleVersion{BuildID: "1.1", ExistingCompatibleBuildID: "1.0"}}))
	w.must(update(change{Operation: &client.BuildIDOpAddNewIDInNewDefaultSet{BuildID: "2.0"}}))
	w.must(update(change{Operation: &client.BuildIDOpPromoteSet{BuildID: "1.1"}}))
	sets, err := w.GetWorkerBuildIdCompatibility(w, &client.GetWorkerBuildIdCompatibilityOptions{TaskQueue: w.queue})
	w.must(err)
	w.equal(sets.Default(), "1.1", "the default")
	w.equal(len(sets.Sets), 2, "sets")
	reached, err := w.GetWorkerTaskReachability(w, &client.GetWorkerTaskReachabilityOptions{
		BuildIDs: []string{"1.1", "2.0"}, TaskQueues: []string{w.queue},
	})
	w.must(err)
	of := func(id string) int {
		return len(reached.BuildIDReachability[id].TaskQueueReachable[w.queue].TaskQueueReachability)
	}
	w.equal([]int{of("1.1"), of("2.0")}, []int{1, 0}, "what new runs reach")
	w.that(update(change{Operation: &client.BuildIDOpPromoteSet{BuildID: "3.0"}}) != nil, "an id that is unknown")
	// Tasks go to any worker of the queue.
	w.must(w.start(client.StartWorkflowOptions{}, Batch, 1).Get(w, nil))
}
