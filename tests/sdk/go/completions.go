package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"everlog/tests/sdk/patience"
)

// left is what is to be completed from outside: the info of an activity by workflow id and attempt.
var left sync.Map

// Leave leaves its completion to somebody outside.
func Leave(ctx context.Context) (string, error) {
	info := activity.GetInfo(ctx)
	left.Store(fmt.Sprint(info.WorkflowExecution.ID, info.Attempt), info)
	return "", activity.ErrResultPending
}

// Outside calls an activity that is completed from outside, and cancels it when it is told to.
func Outside(ctx workflow.Context, attempts int32, timeout time.Duration) (string, error) {
	ctx, cancel := workflow.WithCancel(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, "cancel").Receive(ctx, nil)
		cancel()
	})
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond, MaximumAttempts: attempts},
	})
	var said string
	err := workflow.ExecuteActivity(ctx, Leave).Get(ctx, &said)
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) {
		err = cancelled.Details(&said)
	}
	return said, err
}

// leaves starts an activity that waits for somebody outside.
func (w *world) leaves(attempts int32, timeout time.Duration) client.WorkflowRun {
	return w.start(client.StartWorkflowOptions{}, Outside, attempts, timeout)
}

// left is the info of an attempt, once it has come to its activity.
func (w *world) left(run client.WorkflowRun, attempt int) activity.Info {
	var info activity.Info
	w.until(func() (found bool) {
		var value any
		if value, found = left.Load(fmt.Sprint(run.GetID(), attempt)); found {
			info = value.(activity.Info)
		}
		return found
	})
	return info
}

// result is the result of a run.
func (w *world) result(run client.WorkflowRun) string {
	var said string
	w.must(run.Get(w, &said))
	return said
}

func activitiesAreCompletedFromOutside(w *world) {
	defer w.serve(worker.Options{})()
	byToken := w.leaves(1, patience.Most())
	token := w.left(byToken, 1).TaskToken
	w.must(w.RecordActivityHeartbeat(w, token, "half"))
	w.must(w.CompleteActivity(w, token, "by token", nil))
	w.equal(w.result(byToken), "by token", "the result by token")
	w.that(isNotFound(w.CompleteActivity(w, token, "twice", nil)), "a second completion is refused")

	byID := w.leaves(1, patience.Most())
	id := w.left(byID, 1).ActivityID
	w.must(w.RecordActivityHeartbeatByID(w, w.namespace, byID.GetID(), byID.GetRunID(), id, "half"))
	w.must(w.CompleteActivityByID(w, w.namespace, byID.GetID(), byID.GetRunID(), id, "by ids", nil))
	w.equal(w.result(byID), "by ids", "the result by ids")

	failing := w.leaves(1, patience.Most())
	failure := temporal.NewApplicationError("from outside", "Outside")
	w.must(w.CompleteActivity(w, w.left(failing, 1).TaskToken, nil, failure))
	var failed *temporal.ApplicationError
	err := failing.Get(w, nil)
	w.that(errors.As(err, &failed) && failed.Type() == "Outside", "the failure", err)
}

func cancellationsAreHeardOfOutside(w *world) {
	defer w.serve(worker.Options{})()
	run := w.leaves(1, patience.Most())
	token := w.left(run, 1).TaskToken
	w.must(w.RecordActivityHeartbeat(w, token))
	w.must(w.SignalWorkflow(w, run.GetID(), "", "cancel", nil))
	w.until(func() bool {
		return count(w.events(run.GetID(), run.GetRunID()), enums.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED) == 1
	})
	var cancelled *temporal.CanceledError
	err := w.RecordActivityHeartbeat(w, token)
	w.that(errors.As(err, &cancelled), "a heartbeat tells of it", err)
	w.must(w.CompleteActivity(w, token, nil, temporal.NewCanceledError("gave up")))
	w.equal(w.result(run), "gave up", "what the workflow hears")
}

func lateResultsFromOutsideAreRefused(w *world) {
	defer w.serve(worker.Options{})()
	run := w.leaves(0, 2*time.Second)
	complete := func(attempt int, result string) error {
		return w.CompleteActivity(w, w.left(run, attempt).TaskToken, result, nil)
	}
	w.left(run, 2)
	w.that(isNotFound(complete(1, "late")), "the result of an attempt whose time is over")
	err := complete(2, "in time")
	// A slow machine may take longer than an attempt has.
	for attempt := 3; isNotFound(err); attempt++ {
		err = complete(attempt, "in time")
	}
	w.must(err)
	w.equal(w.result(run), "in time", "the result")
}
