package main

import (
	"errors"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

func (w *world) deleteRun(id, run string) error {
	_, err := w.WorkflowService().DeleteWorkflowExecution(w, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: w.namespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: id, RunId: run},
	})
	return err
}

func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}

// untilGone returns once nobody knows a run any more, whatever they ask.
func (w *world) untilGone(id, run string) {
	w.until(func() bool {
		_, err := w.DescribeWorkflowExecution(w, id, run)
		return isNotFound(err)
	})
	_, err := w.GetWorkflowHistory(w, id, run, false, 0).Next()
	w.that(isNotFound(err), "its history", err)
	_, err = w.QueryWorkflow(w, id, run, "values")
	w.that(isNotFound(err), "a query", err)
	w.that(isNotFound(w.SignalWorkflow(w, id, run, "put", 1)), "a signal")
	w.that(isNotFound(w.GetWorkflow(w, id, run).Get(w, nil)), "its result")
	w.that(isNotFound(w.deleteRun(id, run)), "another deletion")
}

func runsThatAreDeletedAreForgotten(w *world) {
	defer w.serve(worker.Options{})()
	ofClosed := client.StartWorkflowOptions{ID: w.id(), TaskQueue: w.queue}
	ofOpen := client.StartWorkflowOptions{ID: w.id(), TaskQueue: w.queue}
	// Not remembered by the case: there is no history to replay afterwards.
	closed, err := w.ExecuteWorkflow(w, ofClosed, Register)
	w.must(err)
	w.put(ofClosed.ID, 1, 0)
	w.must(closed.Get(w, nil))
	next := w.start(ofClosed, Register)
	open, err := w.ExecuteWorkflow(w, ofOpen, Register)
	w.must(err)
	w.put(ofOpen.ID, 1)
	w.equal(w.values(ofOpen.ID), []int{1}, "the open one")

	w.must(w.deleteRun(ofClosed.ID, closed.GetRunID()))
	w.must(w.deleteRun(ofOpen.ID, ""))
	w.untilGone(ofClosed.ID, closed.GetRunID())
	w.untilGone(ofOpen.ID, open.GetRunID())
	w.that(isNotFound(w.deleteRun(w.id(), "")), "a deletion of what never was")
	w.put(ofClosed.ID, 2)
	w.equal(w.values(ofClosed.ID), []int{2}, "the next run of an id goes on")
	w.put(ofClosed.ID, 0)
	w.must(next.Get(w, nil))
	w.start(ofOpen, Register)
	w.equal(len(w.values(ofOpen.ID)), 0, "values of a run that takes an id again")
}
