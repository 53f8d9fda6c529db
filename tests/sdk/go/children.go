package main

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Child ends as it is told to.
func Child(ctx workflow.Context, end string) (string, error) {
	switch end {
	case "succeed":
		return "done", nil
	case "fail":
		return "", temporal.NewApplicationError("as it was told", "Told")
	}
	signal := workflow.GetSignalChannel(ctx, "end")
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(signal, func(channel workflow.ReceiveChannel, _ bool) { channel.Receive(ctx, nil) })
	selector.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	selector.Select(ctx)
	return "signalled", ctx.Err()
}

// childEnd is a word for how a child has ended.
func childEnd(err error) string {
	var told *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	var timedOut *temporal.TimeoutError
	switch {
	case err == nil:
		return "completed"
	case errors.As(err, &told):
		return "failed: " + told.Type()
	case errors.As(err, &cancelled):
		return "cancelled"
	case errors.As(err, &terminated):
		return "terminated"
	case errors.As(err, &timedOut):
		return "timed out"
	}
	return err.Error()
}

func childContext(ctx workflow.Context, name string, policy enums.ParentClosePolicy) workflow.Context {
	options := workflow.ChildWorkflowOptions{
		WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "-" + name, ParentClosePolicy: policy,
	}
	if name == "expire" {
		options.WorkflowRunTimeout = time.Second
	}
	return workflow.WithChildOptions(ctx, options)
}

// Parent has a child for each way to end, and tells how it heard of it; one it signals, one it cancels.
func Parent(ctx workflow.Context) (map[string]string, error) {
	const policy = enums.PARENT_CLOSE_POLICY_TERMINATE
	ends := map[string]string{}
	cancelled, cancel := workflow.WithCancel(ctx)
	futures := map[string]workflow.ChildWorkflowFuture{}
	names := []string{"succeed", "fail", "signal", "cancel", "expire", "terminate"}
	for _, name := range names {
		of := ctx
		if name == "cancel" {
			of = cancelled
		}
		child := workflow.ExecuteChildWorkflow(childContext(of, name, policy), Child, name)
		if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return nil, err
		}
		futures[name] = child
	}
	if err := futures["signal"].SignalChildWorkflow(ctx, "end", nil).Get(ctx, nil); err != nil {
		return nil, err
	}
	cancel()
	nobody := workflow.SignalExternalWorkflow(ctx, "nobody-"+workflow.GetInfo(ctx).WorkflowExecution.RunID, "", "end", nil)
	var unknown *temporal.UnknownExternalWorkflowExecutionError
	ends["nobody"] = fmt.Sprint(errors.As(nobody.Get(ctx, nil), &unknown))
	own := workflow.ChildWorkflowOptions{WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID}
	clash := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, own), Child, "succeed")
	ends["clash"] = fmt.Sprint(temporal.IsWorkflowExecutionAlreadyStartedError(clash.Get(ctx, nil)))
	for _, name := range names {
		ends[name] = childEnd(futures[name].Get(ctx, nil))
	}
	return ends, nil
}

// Leaver starts a child for each policy and leaves them.
func Leaver(ctx workflow.Context) error {
	for _, child := range []struct {
		name   string
		policy enums.ParentClosePolicy
	}{
		{"terminated", enums.PARENT_CLOSE_POLICY_TERMINATE},
		{"cancelled", enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL},
		{"left", enums.PARENT_CLOSE_POLICY_ABANDON},
	} {
		future := workflow.ExecuteChildWorkflow(childContext(ctx, child.name, child.policy), Child, child.name)
		if err := future.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func parentsHearOfEveryEnd(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Parent)
	child := run.GetID() + "-terminate"
	// A child by its own id is refused meanwhile; then it hears of the end of the last one.
	w.until(func() bool {
		return count(w.events(run.GetID(), run.GetRunID()), enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED) == 1
	})
	w.must(w.TerminateWorkflow(w, child, "", "the case wants it"))
	var ends map[string]string
	w.must(run.Get(w, &ends))
	w.equal(ends, map[string]string{
		"succeed": "completed", "fail": "failed: Told", "signal": "completed", "cancel": "cancelled",
		"expire": "timed out", "terminate": "terminated", "nobody": "true", "clash": "true",
	}, "the ends of the children")
}

func childrenAreLeftAsTheirPolicySays(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Leaver)
	w.must(run.Get(w, nil))
	status := func(name string) enums.WorkflowExecutionStatus {
		child, err := w.DescribeWorkflowExecution(w, run.GetID()+"-"+name, "")
		w.must(err)
		return child.WorkflowExecutionInfo.Status
	}
	w.until(func() bool { return status("terminated") == enums.WORKFLOW_EXECUTION_STATUS_TERMINATED })
	w.until(func() bool { return status("cancelled") == enums.WORKFLOW_EXECUTION_STATUS_CANCELED })
	w.equal(status("left"), enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "the one that was left")
	left := w.GetWorkflow(w, run.GetID()+"-left", "")
	w.must(w.SignalWorkflow(w, left.GetID(), "", "end", nil))
	var said string
	w.must(left.Get(w, &said))
	w.equal(said, "signalled", "it goes on by itself")
}
