package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	sdkmetadata "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
)

// Stumble gets half the way.
func Stumble(ctx context.Context) error {
	activity.RecordHeartbeat(ctx, "half the way")
	return temporal.NewApplicationError("not yet", "Early")
}

// Busy waits for a child, and for an activity whose second attempt is a long time off, until it is told to give up both.
func Busy(ctx workflow.Context) ([]string, error) {
	given, giveUp := workflow.WithCancel(ctx)
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(given, workflow.ChildWorkflowOptions{
		WorkflowID:          workflow.GetInfo(ctx).WorkflowExecution.ID + "-child",
		ParentClosePolicy:   enums.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation: true,
	}), Child, "wait")
	call := workflow.ExecuteActivity(workflow.WithActivityOptions(given, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Hour, MaximumAttempts: 3},
	}), Stumble)
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	giveUp()
	return []string{childEnd(child.Get(ctx, nil)), childEnd(call.Get(ctx, nil))}, nil
}

func (w *world) described(run client.WorkflowRun) *workflowservice.DescribeWorkflowExecutionResponse {
	described, err := w.DescribeWorkflowExecution(w, run.GetID(), run.GetRunID())
	w.must(err)
	return described
}

func pendingWorkIsDescribed(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Busy)
	var open *workflowservice.DescribeWorkflowExecutionResponse
	w.until(func() bool {
		open = w.described(run)
		return len(open.PendingActivities) == 1 && open.PendingActivities[0].Attempt == 2 &&
			len(open.PendingChildren) == 1 && open.PendingChildren[0].RunId != ""
	})
	pending := open.PendingActivities[0]
	w.equal(pending.ActivityType.Name, "Stumble", "the activity")
	w.equal(pending.State, enums.PENDING_ACTIVITY_STATE_SCHEDULED, "its state")
	w.equal(pending.MaximumAttempts, int32(3), "how often it may be tried")
	w.equal(pending.LastFailure.GetMessage(), "not yet", "its last failure")
	w.equal(pending.LastFailure.GetApplicationFailureInfo().GetType(), "Early", "the type of that")
	w.that(pending.LastWorkerIdentity != "", "who has had it")
	var details string
	w.must(converter.GetDefaultDataConverter().FromPayloads(pending.HeartbeatDetails, &details))
	w.equal(details, "half the way", "what it last told")
	w.equal(pending.CurrentRetryInterval.AsDuration().Round(time.Second), time.Hour, "how long it waits")
	waits := pending.NextAttemptScheduleTime.AsTime().Sub(pending.LastAttemptCompleteTime.AsTime())
	w.equal(waits.Round(time.Second), time.Hour, "from the last attempt to the next")

	events := w.events(run.GetID(), run.GetRunID())
	child := open.PendingChildren[0]
	w.equal([]string{child.WorkflowId, child.WorkflowTypeName}, []string{run.GetID() + "-child", "Child"}, "the child")
	w.equal(child.ParentClosePolicy, enums.PARENT_CLOSE_POLICY_ABANDON, "what becomes of it")
	initiated := events[child.InitiatedId-1].GetStartChildWorkflowExecutionInitiatedEventAttributes()
	w.equal(initiated.GetWorkflowId(), child.WorkflowId, "the event that it comes from")

	w.must(w.SignalWorkflow(w, run.GetID(), "", "end", nil))
	var ends []string
	w.must(run.Get(w, &ends))
	w.equal(ends, []string{"cancelled", "cancelled"}, "how both have ended")
	closed := w.described(run)
	w.equal([]int{len(closed.PendingActivities), len(closed.PendingChildren)}, []int{0, 0}, "what is pending at last")
	w.that(closed.PendingWorkflowTask == nil, "no task is pending")
}

func runsAreDescribed(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{
		StaticSummary: "a workflow of Go", StaticDetails: "that waits", Memo: map[string]any{"of": "the case"},
	}, Register)
	open, err := w.DescribeWorkflow(w, run.GetID(), run.GetRunID())
	w.must(err)
	w.equal(open.Status, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "the status")
	w.equal([]string{open.WorkflowType.Name, open.TaskQueueName}, []string{"Register", w.queue}, "the open run")
	summary, err := open.GetStaticSummary()
	w.must(err)
	details, err := open.GetStaticDetails()
	w.must(err)
	w.equal([]string{summary, details}, []string{"a workflow of Go", "that waits"}, "what it is")
	var memo string
	w.must(converter.GetDefaultDataConverter().FromPayload(open.Memo.GetFields()["of"], &memo))
	w.equal(memo, "the case", "its memo")
	w.put(run.GetID(), 0)
	w.must(run.Get(w, nil))
	closed, err := w.DescribeWorkflow(w, run.GetID(), run.GetRunID())
	w.must(err)
	w.equal(closed.Status, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the status at last")
	w.equal(closed.HistoryLength, len(w.events(run.GetID(), run.GetRunID())), "the length of its history")
	w.that(!closed.WorkflowCloseTime.Before(closed.WorkflowStartTime), "its times", closed)
}

func stacksAndMetadataAreQueried(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Register)
	value, err := w.QueryWorkflow(w, run.GetID(), "", client.QueryTypeStackTrace)
	w.must(err)
	var stack string
	w.must(value.Get(&stack))
	w.that(strings.Contains(stack, "blocked on put.Receive"), "what the workflow waits for", stack)
	w.that(strings.Contains(stack, "main.kept"), "where it waits", stack)
	value, err = w.QueryWorkflow(w, run.GetID(), "", "__temporal_workflow_metadata")
	w.must(err)
	var metadata sdkmetadata.WorkflowMetadata
	w.must(value.Get(&metadata))
	w.equal(metadata.Definition.GetType(), "Register", "its type")
	has := func(definitions []*sdkmetadata.WorkflowInteractionDefinition, name, description string) bool {
		return slices.ContainsFunc(definitions, func(one *sdkmetadata.WorkflowInteractionDefinition) bool {
			return one.Name == name && one.Description == description
		})
	}
	w.that(has(metadata.Definition.QueryDefinitions, "values", "the values in the order they came"), "its query", &metadata)
	w.that(has(metadata.Definition.SignalDefinitions, "put", ""), "its signal", &metadata)
}

func historiesComeInPages(w *world) {
	run := w.start(client.StartWorkflowOptions{}, Register)
	for n := range 30 {
		w.put(run.GetID(), n+1)
	}
	w.put(run.GetID(), 0)
	defer w.serve(worker.Options{})()
	w.must(run.Get(w, nil))
	whole := w.events(run.GetID(), run.GetRunID())
	w.equal(count(whole, enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), 31, "signals")

	execution := &common.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()}
	service := w.WorkflowService()
	w.comesInPages(whole, func(token []byte) (*history.History, []byte, error) {
		page, err := service.GetWorkflowExecutionHistory(w, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: w.namespace, Execution: execution, MaximumPageSize: 5, NextPageToken: token,
		})
		return page.GetHistory(), page.GetNextPageToken(), err
	})
	slices.Reverse(whole)
	w.comesInPages(whole, func(token []byte) (*history.History, []byte, error) {
		page, err := service.GetWorkflowExecutionHistoryReverse(w, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: w.namespace, Execution: execution, MaximumPageSize: 5, NextPageToken: token,
		})
		return page.GetHistory(), page.GetNextPageToken(), err
	})
}

// comesInPages claims that these events come, and in pages.
func (w *world) comesInPages(events []*history.HistoryEvent, page func(token []byte) (*history.History, []byte, error)) {
	var all history.History
	pages := 0
	for token := []byte(nil); pages == 0 || len(token) > 0; pages++ {
		some, next, err := page(token)
		w.must(err)
		all.Events = append(all.Events, some.GetEvents()...)
		token = next
	}
	w.that(pages > len(events)/10, "pages", pages)
	w.that(proto.Equal(&all, &history.History{Events: events}), "they hold the same", len(all.Events), len(events))
}
