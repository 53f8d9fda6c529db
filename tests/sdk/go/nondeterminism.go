package main

import (
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Changing calls an activity, and waits until it is told to end.
func Changing(ctx workflow.Context) (int, error) {
	attempt, err := acted(ctx)
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return attempt, err
}

func acted(ctx workflow.Context) (int, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	var attempt int
	err := workflow.ExecuteActivity(ctx, SucceedAt, 1).Get(ctx, &attempt)
	return attempt, err
}

// Changed sleeps where the history of Changing has an activity.
func Changed(ctx workflow.Context) (int, error) {
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return 0, err
	}
	return acted(ctx)
}

// Broken is Changing with a mistake in its last line.
func Broken(ctx workflow.Context) (int, error) {
	if _, err := acted(ctx); err != nil {
		return 0, err
	}
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	panic("a bug")
}

func changedCodeFailsItsTask(w *world) {
	failsItsTask(w, Changed, enums.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR)
}

func brokenCodeFailsItsTask(w *world) {
	failsItsTask(w, Broken, enums.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE)
}

// failsItsTask has a run of Changing go on with this code, which fails its task, and at last with what it was. Where a task took
// longer than it may, another run has twice as long.
func failsItsTask(w *world, definition any, cause enums.WorkflowTaskFailedCause) {
	for timeout := 2 * time.Second; !w.failsItsTaskWithin(timeout, definition, cause); timeout *= 2 {
	}
}

func (w *world) failsItsTaskWithin(timeout time.Duration, definition any, cause enums.WorkflowTaskFailedCause) (isInTime bool) {
	stop := w.serve(worker.Options{})
	run := w.start(client.StartWorkflowOptions{WorkflowTaskTimeout: timeout}, Changing)
	w.until(func() bool {
		return count(w.events(run.GetID(), run.GetRunID()), enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED) == 2
	})
	stop()
	w.during("changed", "Changing", definition, func() {
		w.must(w.SignalWorkflow(w, run.GetID(), "", "end", nil))
		w.until(func() bool {
			described, err := w.DescribeWorkflowExecution(w, run.GetID(), run.GetRunID())
			w.must(err)
			return described.PendingWorkflowTask.GetAttempt() >= 3
		})
		events := w.events(run.GetID(), run.GetRunID())
		if isInTime = count(events, enums.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT) == 0; !isInTime {
			return
		}
		failures := failedTasks(events)
		w.equal(len(failures), 1, "events of failed tasks: further attempts leave none")
		w.equal(failures[0].Cause, cause, "the cause")
		_, err := w.QueryWorkflow(w, run.GetID(), "", client.QueryTypeStackTrace)
		var notReady *serviceerror.WorkflowNotReady
		w.that(errors.As(err, &notReady), "a query meanwhile is refused", err)
	})
	defer w.serve(worker.Options{})()
	var attempt int
	w.must(run.Get(w, &attempt))
	w.equal(attempt, 1, "the result of mended code")
	return isInTime
}

func failedTasks(events []*history.HistoryEvent) []*history.WorkflowTaskFailedEventAttributes {
	var failures []*history.WorkflowTaskFailedEventAttributes
	for _, event := range events {
		if failure := event.GetWorkflowTaskFailedEventAttributes(); failure != nil {
			failures = append(failures, failure)
		}
	}
	return failures
}
