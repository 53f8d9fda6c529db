package main

import (
	"context"
	"errors"
	"math/rand"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// seen counts what ran, by workflow id and name: workflows and tests live in one process.
var (
	seenMutex sync.Mutex
	seen      = map[string]int{}
)

func see(id, name string) int {
	seenMutex.Lock()
	defer seenMutex.Unlock()
	seen[id+name]++
	return seen[id+name]
}

func timesSeen(id, name string) int {
	seenMutex.Lock()
	defer seenMutex.Unlock()
	return seen[id+name]
}

// Drawn is what a workflow drew at random, and what it saw of a value that changes.
type Drawn struct {
	First, Second int64
	Mutable       []int
}

// Draw draws by side effects, with a timer in between.
func Draw(ctx workflow.Context) (Drawn, error) {
	var drawn Drawn
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	draw := func(workflow.Context) any {
		see(id, "side effect")
		return rand.Int63()
	}
	if err := workflow.SideEffect(ctx, draw).Get(&drawn.First); err != nil {
		return drawn, err
	}
	// The value changes at the third look; a marker is written only when it does.
	for look := range 5 {
		var value int
		err := workflow.MutableSideEffect(ctx, "level",
			func(workflow.Context) any { return look / 2 },
			func(a, b any) bool { return a == b }).Get(&value)
		if err != nil {
			return drawn, err
		}
		drawn.Mutable = append(drawn.Mutable, value)
		if err := workflow.Sleep(ctx, 20*time.Millisecond); err != nil {
			return drawn, err
		}
	}
	return drawn, workflow.SideEffect(ctx, draw).Get(&drawn.Second)
}

// Versioned takes the path of the version that it was started with.
func Versioned(ctx workflow.Context) (string, error) {
	version := workflow.GetVersion(ctx, "the path", workflow.DefaultVersion, 3)
	if err := workflow.Sleep(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	if again := workflow.GetVersion(ctx, "the path", workflow.DefaultVersion, 3); again != version {
		return "", errors.New("the version changed")
	}
	return map[workflow.Version]string{3: "the third path"}[version], nil
}

// Local calls local activities: one that succeeds at once, one at its third attempt.
func Local(ctx workflow.Context) ([]int, error) {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 20 * time.Millisecond, BackoffCoefficient: 1},
	})
	results := make([]int, 2)
	for i, attempt := range []int{1, 3} {
		if err := workflow.ExecuteLocalActivity(ctx, SucceedAt, attempt).Get(ctx, &results[i]); err != nil {
			return nil, err
		}
		if err := workflow.Sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Remote calls an ordinary activity that succeeds at its second attempt.
func Remote(ctx workflow.Context) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond},
		Summary:             "an activity of Go",
	})
	var attempt int
	err := workflow.ExecuteActivity(ctx, SucceedAt, 2).Get(ctx, &attempt)
	return attempt, err
}

// SucceedAt fails until it is called for this attempt.
func SucceedAt(ctx context.Context, attempt int) (int, error) {
	info := activity.GetInfo(ctx)
	see(info.WorkflowExecution.ID, "succeed at")
	if int(info.Attempt) < attempt {
		return 0, errors.New("not yet")
	}
	return int(info.Attempt), nil
}

func sideEffectsHappenOnce(w *world) {
	// No cache: each task replays the whole history, and must find what was drawn.
	worker.SetStickyWorkflowCacheSize(0)
	defer worker.SetStickyWorkflowCacheSize(1000)
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Draw)
	var drawn Drawn
	w.must(run.Get(w, &drawn))
	w.that(drawn.First != drawn.Second, "two draws differ", drawn)
	w.equal(drawn.Mutable, []int{0, 0, 1, 1, 2}, "the value as it changed")
	w.equal(timesSeen(run.GetID(), "side effect"), 2, "draws")
	// Two side effects, and three values of the mutable one.
	w.equal(count(w.events(run.GetID(), run.GetRunID()), enums.EVENT_TYPE_MARKER_RECORDED), 5, "markers")
}

func versionsStayWhatTheyWere(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Versioned)
	var path string
	w.must(run.Get(w, &path))
	w.equal(path, "the third path", "the path")
	events := w.events(run.GetID(), run.GetRunID())
	w.equal(count(events, enums.EVENT_TYPE_MARKER_RECORDED), 1, "markers")
	w.equal(count(events, enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES), 1, "upserts of the change version")
}

func localActivitiesAreRetried(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Local)
	var attempts []int
	w.must(run.Get(w, &attempts))
	w.equal(attempts, []int{1, 3}, "the attempts that succeeded")
	w.equal(timesSeen(run.GetID(), "succeed at"), 4, "attempts in all")
	events := w.events(run.GetID(), run.GetRunID())
	w.equal(count(events, enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), 0, "ordinary activities")
	w.equal(count(events, enums.EVENT_TYPE_MARKER_RECORDED), 2, "markers")
}

func activitiesAreRetried(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{StaticSummary: "a workflow of Go"}, Remote)
	var attempt int
	w.must(run.Get(w, &attempt))
	w.equal(attempt, 2, "the attempt that succeeded")
	for _, event := range w.events(run.GetID(), run.GetRunID()) {
		if event.EventType == enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			w.equal(string(event.UserMetadata.GetSummary().GetData()), `"an activity of Go"`, "the summary")
		}
	}
}
