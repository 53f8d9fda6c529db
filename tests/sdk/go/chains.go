package main

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Third fails until its third attempt.
func Third(ctx workflow.Context) (int32, error) {
	attempt := workflow.GetInfo(ctx).Attempt
	if attempt < 3 {
		return 0, temporal.NewApplicationError("not yet", "Early")
	}
	return attempt, nil
}

// Again counts its runs by the result of the last one.
func Again(ctx workflow.Context) (int, error) {
	count := 0
	if workflow.HasLastCompletionResult(ctx) {
		if err := workflow.GetLastCompletionResult(ctx, &count); err != nil {
			return 0, err
		}
	}
	return count + 1, nil
}

// Register keeps the values that it is told, until it is told a zero.
func Register(ctx workflow.Context) ([]int, error) { return kept(ctx, 1) }

// kept is the values that a workflow is told, that many times as large.
func kept(ctx workflow.Context, factor int) ([]int, error) {
	var values []int
	answer := func() ([]int, error) { return values, nil }
	options := workflow.QueryHandlerOptions{Description: "the values in the order they came"}
	if err := workflow.SetQueryHandlerWithOptions(ctx, "values", answer, options); err != nil {
		return nil, err
	}
	for channel := workflow.GetSignalChannel(ctx, "put"); ; {
		value := 0
		channel.Receive(ctx, &value)
		if value == 0 {
			return values, nil
		}
		values = append(values, factor*value)
	}
}

func (w *world) put(id string, values ...int) {
	for _, value := range values {
		w.must(w.SignalWorkflow(w, id, "", "put", value))
	}
}

func workflowsAreRetried(w *world) {
	defer w.serve(worker.Options{})()
	policy := &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 3}
	run := w.start(client.StartWorkflowOptions{RetryPolicy: policy}, Third)
	// Who waits for the result follows the chain.
	firstRun := run.GetRunID()
	var attempt int
	w.must(run.Get(w, &attempt))
	w.equal(attempt, 3, "the attempt that succeeds")
	first := w.events(run.GetID(), firstRun)
	failed := first[len(first)-1].GetWorkflowExecutionFailedEventAttributes()
	w.equal(failed.GetRetryState(), enums.RETRY_STATE_IN_PROGRESS, "the first failure is retried")
	second := w.events(run.GetID(), failed.GetNewExecutionRunId())
	started := second[0].GetWorkflowExecutionStartedEventAttributes()
	w.equal(started.GetContinuedExecutionRunId(), firstRun, "the run before")
	w.equal(started.GetContinuedFailure().GetMessage(), "not yet", "the failure before")
	policy = &temporal.RetryPolicy{NonRetryableErrorTypes: []string{"Early"}, MaximumAttempts: 3}
	err := w.start(client.StartWorkflowOptions{RetryPolicy: policy}, Third).Get(w, nil)
	var early *temporal.ApplicationError
	w.that(errors.As(err, &early) && early.Type() == "Early", "what is not to be retried fails", err)
}

func cronRunsGoOnFromTheirResults(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{CronSchedule: "@every 1s"}, Again)
	var next string
	w.until(func() bool {
		described, err := w.DescribeWorkflowExecution(w, run.GetID(), "")
		w.must(err)
		next = described.WorkflowExecutionInfo.Execution.RunId
		started := w.events(run.GetID(), next)[0].GetWorkflowExecutionStartedEventAttributes()
		results := 0
		if started.LastCompletionResult != nil {
			w.must(converter.GetDefaultDataConverter().FromPayloads(started.LastCompletionResult, &results))
		}
		return results >= 2
	})
	started := w.events(run.GetID(), next)[0].GetWorkflowExecutionStartedEventAttributes()
	w.equal(started.GetInitiator(), enums.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE, "who has begun it")
	w.equal(started.GetFirstExecutionRunId(), run.GetRunID(), "the first run")
	w.that(started.GetFirstWorkflowTaskBackoff().AsDuration() <= time.Second, "it waits for its second")
}

func idsAreUsedAgainAsPoliciesSay(w *world) {
	defer w.serve(worker.Options{})()
	first := w.start(client.StartWorkflowOptions{StartDelay: 500 * time.Millisecond}, Register)
	begun := w.events(first.GetID(), first.GetRunID())[0].GetWorkflowExecutionStartedEventAttributes()
	w.equal(begun.GetFirstWorkflowTaskBackoff().AsDuration(), 500*time.Millisecond, "the start is delayed")
	second := w.start(client.StartWorkflowOptions{
		ID: first.GetID(), WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
	}, Register)
	var terminated *temporal.TerminatedError
	err := w.GetWorkflow(w, first.GetID(), first.GetRunID()).Get(w, nil)
	w.that(errors.As(err, &terminated), "the one before is terminated", err)
	w.put(second.GetID(), 0)
	w.must(second.Get(w, nil))
	for policy, isFree := range map[enums.WorkflowIdReusePolicy]bool{
		enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:            false,
		enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY: false,
		enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE:             true,
	} {
		_, err := w.tryStart(client.StartWorkflowOptions{ID: second.GetID(), WorkflowIDReusePolicy: policy}, Register)
		var already *serviceerror.WorkflowExecutionAlreadyStarted
		w.equal(err == nil, isFree, policy.String())
		w.that(err == nil || errors.As(err, &already), "it is refused because of its id", err)
	}
}

func resetsTakeSignalsAlong(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Register)
	w.values(run.GetID())
	w.put(run.GetID(), 3, 4, 5)
	w.equal(w.values(run.GetID()), []int{3, 4, 5}, "before the reset")
	again := w.reset(run.GetID(), run.GetRunID(), 4)
	resetRun := again.GetRunID()
	w.equal(w.values(run.GetID()), []int{3, 4, 5}, "after the reset")
	w.put(run.GetID(), 6, 0)
	var values []int
	w.must(again.Get(w, &values))
	w.equal(values, []int{3, 4, 5, 6}, "the values of the run that was reset")
	events := w.events(run.GetID(), resetRun)
	w.equal(count(events, enums.EVENT_TYPE_WORKFLOW_TASK_FAILED), 1, "tasks that failed by the reset")
}

// reset sends a run back to the workflow task that ended with this event: the run that goes on instead.
func (w *world) reset(id, run string, taskEnd int64) client.WorkflowRun {
	answer, err := w.ResetWorkflowExecution(w, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 w.namespace,
		WorkflowExecution:         &common.WorkflowExecution{WorkflowId: id, RunId: run},
		WorkflowTaskFinishEventId: taskEnd,
		RequestId:                 uuid.NewString(),
		Reason:                    "the case wants it",
	})
	w.must(err)
	w.remember(id, answer.RunId)
	return w.GetWorkflow(w, id, answer.RunId)
}

func (w *world) values(id string) []int {
	value, err := w.QueryWorkflow(w, id, "", "values")
	w.must(err)
	var values []int
	w.must(value.Get(&values))
	return values
}

func queriesAreRejectedAsTheyAsk(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Register)
	w.put(run.GetID(), 9)
	w.equal(w.values(run.GetID()), []int{9}, "open")
	_, err := w.QueryWorkflow(w, run.GetID(), "", "no such query")
	var failed *serviceerror.QueryFailed
	w.that(errors.As(err, &failed), "a query that nobody answers fails", err)
	w.put(run.GetID(), 0)
	w.must(run.Get(w, nil))
	w.equal(w.values(run.GetID()), []int{9}, "closed")
	answer, err := w.QueryWorkflowWithOptions(w, &client.QueryWorkflowWithOptionsRequest{
		WorkflowID: run.GetID(), QueryType: "values", QueryRejectCondition: enums.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	w.must(err)
	w.equal(answer.QueryRejected.GetStatus(), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "why it is rejected")
}
