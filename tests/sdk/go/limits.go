package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// tooMuch is more than a payload may hold.
var tooMuch = strings.Repeat("much", 600_000)

// Swell answers with too much.
func Swell(context.Context) (string, error) { return tooMuch, nil }

// Swollen is Changing with a result that is too large.
func Swollen(ctx workflow.Context) (string, error) {
	if _, err := acted(ctx); err != nil {
		return "", err
	}
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return tooMuch, nil
}

// Stuffed is Changing that calls an activity with too much.
func Stuffed(ctx workflow.Context) (int, error) {
	attempt, err := acted(ctx)
	if err != nil {
		return 0, err
	}
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return attempt, stuff(ctx)
}

func stuff(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteActivity(ctx, Echo, tooMuch).Get(ctx, nil)
}

// Excess is too much in a place of its own, for a server to find.
func Excess(ctx workflow.Context, place string) (string, error) {
	switch place {
	case "input of an activity":
		return "", stuff(ctx)
	case "result of an activity":
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
		return "", workflow.ExecuteActivity(ctx, Swell).Get(ctx, nil)
	}
	return tooMuch, nil
}

func whatIsTooLargeIsRefused(w *world) {
	run := w.start(client.StartWorkflowOptions{}, Register)
	_, started := w.tryStart(client.StartWorkflowOptions{}, Echoed, tooMuch)
	_, noted := w.tryStart(client.StartWorkflowOptions{Memo: map[string]any{"note": tooMuch}}, Echoed, "")
	_, both := w.SignalWithStartWorkflow(w, w.id(), "put", tooMuch, client.StartWorkflowOptions{TaskQueue: w.queue}, Register)
	_, queried := w.QueryWorkflow(w, run.GetID(), "", "values", tooMuch)
	for call, err := range map[string]error{
		"a start": started, "a memo": noted, "a start with a signal": both, "a query": queried,
		"a signal": w.SignalWorkflow(w, run.GetID(), "", "put", tooMuch),
	} {
		var invalid *serviceerror.InvalidArgument
		w.that(errors.As(err, &invalid), call+" is refused", err)
	}
	w.equal(len(w.events(run.GetID(), run.GetRunID())), 2, "events: nothing was written")
	defer w.serve(worker.Options{})()
	w.put(run.GetID(), 0)
	w.must(run.Get(w, nil))
}

func workersHeedTheLimitsThatTheyAreTold(w *world) {
	told, err := w.WorkflowService().DescribeNamespace(w, &workflowservice.DescribeNamespaceRequest{Namespace: w.namespace})
	w.must(err)
	if told.NamespaceInfo.Limits.GetBlobSizeLimitError() == 0 {
		// An older server tells none.
		limitsHold(w, worker.Options{})
		return
	}
	// The run is none the worse.
	for _, definition := range []any{Swollen, Stuffed} {
		failsItsTask(w, definition, enums.WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE)
	}
}

func limitsHoldThatNoWorkerHeeds(w *world) {
	limitsHold(w, worker.Options{DisablePayloadErrorLimit: true})
}

// limitsHold has the server find what such a worker lets through.
func limitsHold(w *world, options worker.Options) {
	defer w.serve(options)()
	err := w.start(client.StartWorkflowOptions{}, Excess, "result of an activity").Get(w, nil)
	var failed *temporal.ServerError
	w.that(errors.As(err, &failed) && failed.Error() == "Complete result exceeds size limit.", "the activity fails", err)
	for place, reason := range map[string]string{
		"input of an activity": "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.",
		"result of a workflow": "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.",
	} {
		run := w.start(client.StartWorkflowOptions{}, Excess, place)
		var terminated *temporal.TerminatedError
		err := run.Get(w, nil)
		w.that(errors.As(err, &terminated), "the run is ended by an "+place, err)
		events := w.events(run.GetID(), run.GetRunID())
		end := events[len(events)-1].GetWorkflowExecutionTerminatedEventAttributes()
		w.that(strings.HasSuffix(end.GetReason(), reason), "why", end)
	}
}

// Turnstile lets nobody pass before it is opened.
func Turnstile(ctx workflow.Context) (int, error) {
	passed, isOpen := 0, false
	pass := func(ctx workflow.Context) (int, error) {
		err := workflow.Await(ctx, func() bool { return isOpen })
		passed++
		return passed, err
	}
	if err := workflow.SetUpdateHandler(ctx, "pass", pass); err != nil {
		return 0, err
	}
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	isOpen = true
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return passed, nil
}

func updatesInFlightAreBounded(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Turnstile)
	pass := func(id string) client.WorkflowUpdateHandle {
		handle, err := w.UpdateWorkflow(w, client.UpdateWorkflowOptions{
			UpdateID: id, WorkflowID: run.GetID(), UpdateName: "pass", WaitForStage: client.WorkflowUpdateStageAccepted,
		})
		w.must(err)
		return handle
	}
	var handles []client.WorkflowUpdateHandle
	for n := range 10 {
		handles = append(handles, pass(fmt.Sprint(n)))
	}
	// The client itself would try again and again.
	_, err := w.WorkflowService().UpdateWorkflowExecution(w, &workflowservice.UpdateWorkflowExecutionRequest{
		Namespace:         w.namespace,
		WorkflowExecution: &common.WorkflowExecution{WorkflowId: run.GetID()},
		WaitPolicy:        &update.WaitPolicy{LifecycleStage: enums.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED},
		Request:           &update.Request{Meta: &update.Meta{UpdateId: "one too many"}, Input: &update.Input{Name: "pass"}},
	})
	var exhausted *serviceerror.ResourceExhausted
	w.that(errors.As(err, &exhausted), "one too many is refused", err)
	w.equal(exhausted.Cause, enums.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT, "why")
	w.must(w.SignalWorkflow(w, run.GetID(), "", "end", nil))
	var passed []int
	for _, handle := range handles {
		passed = append(passed, w.outcome(handle))
	}
	slices.Sort(passed)
	w.equal(passed, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "they pass, one by one")
	w.equal(w.outcome(pass("one too many")), 11, "then it passes too")
	w.must(w.SignalWorkflow(w, run.GetID(), "", "end", nil))
	var all int
	w.must(run.Get(w, &all))
	w.equal(all, 11, "who has passed")
}
