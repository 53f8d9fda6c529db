package main

import (
	"errors"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Tally adds what updates bring, until it is told to close.
func Tally(ctx workflow.Context, sum int) (int, error) {
	add := func(ctx workflow.Context, amount int) (int, error) {
		if amount == 13 {
			return 0, temporal.NewApplicationError("thirteen is never added", "Unlucky")
		}
		sum += amount
		return sum, nil
	}
	options := workflow.UpdateHandlerOptions{Validator: func(amount int) error {
		if amount < 0 {
			return errors.New("it only grows")
		}
		return nil
	}}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, "add", add, options); err != nil {
		return sum, err
	}
	workflow.GetSignalChannel(ctx, "close").Receive(ctx, nil)
	return sum, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

func (w *world) add(run client.WorkflowRun, id string, amount int, stage client.WorkflowUpdateStage) (client.WorkflowUpdateHandle, error) {
	return w.UpdateWorkflow(w, client.UpdateWorkflowOptions{
		UpdateID: id, WorkflowID: run.GetID(), UpdateName: "add", Args: []any{amount}, WaitForStage: stage,
	})
}

func (w *world) outcome(handle client.WorkflowUpdateHandle) int {
	var sum int
	w.must(handle.Get(w, &sum))
	return sum
}

func updatesAreValidatedAndAnsweredOnce(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Tally, 0)
	for range 2 {
		handle, err := w.add(run, "first", 5, client.WorkflowUpdateStageCompleted)
		w.must(err)
		w.equal(w.outcome(handle), 5, "one update, however often it is sent")
	}
	handle, err := w.add(run, "", 2, client.WorkflowUpdateStageAccepted)
	w.must(err)
	w.equal(w.outcome(handle), 7, "the outcome of an update that was waited for until it was accepted")
	refused, err := w.add(run, "refused", -1, client.WorkflowUpdateStageCompleted)
	if err == nil {
		err = refused.Get(w, nil)
	}
	w.that(err != nil, "the validator refuses")
	failed, err := w.add(run, "failed", 13, client.WorkflowUpdateStageCompleted)
	if err == nil {
		err = failed.Get(w, nil)
	}
	var unlucky *temporal.ApplicationError
	w.that(errors.As(err, &unlucky) && unlucky.Type() == "Unlucky", "the handler fails", err)
	w.must(w.SignalWorkflow(w, run.GetID(), "", "close", nil))
	var sum int
	w.must(run.Get(w, &sum))
	w.equal(sum, 7, "the sum")
	known := w.GetWorkflowUpdateHandle(client.GetWorkflowUpdateHandleOptions{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateID: "first",
	})
	w.equal(w.outcome(known), 5, "an outcome after the end")
	_, err = w.add(run, "late", 1, client.WorkflowUpdateStageCompleted)
	var notFound *serviceerror.NotFound
	w.that(errors.As(err, &notFound), "an update after the end is refused", err)
	events := w.events(run.GetID(), run.GetRunID())
	w.equal(count(events, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED), 3, "accepted in the history")
	w.equal(count(events, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED), 3, "completed in the history")
}

func updatesStartTheirWorkflow(w *world) {
	defer w.serve(worker.Options{})()
	id := w.id()
	var runs []string
	for n := range 3 {
		start := w.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
			ID: id, TaskQueue: w.queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, Tally, 100)
		handle, err := w.UpdateWithStartWorkflow(w, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: start,
			UpdateOptions: client.UpdateWorkflowOptions{
				UpdateName: "add", Args: []any{1}, WaitForStage: client.WorkflowUpdateStageCompleted,
			},
		})
		w.must(err)
		w.equal(w.outcome(handle), 101+n, fmt.Sprint("the outcome of update ", n))
		run, err := start.Get(w)
		w.must(err)
		runs = append(runs, run.GetRunID())
		w.remember(id, run.GetRunID())
	}
	w.equal(runs, []string{runs[0], runs[0], runs[0]}, "one run")
}
