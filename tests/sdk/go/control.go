package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	activitypb "go.temporal.io/api/activity/v1"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// Toil reports until it hears that it shall end, and fails with what it has heard. An attempt that finds a report ends.
func Toil(ctx context.Context, waits bool) (string, error) {
	attempt := activity.GetInfo(ctx).Attempt
	if !waits {
		return fmt.Sprint("attempt ", attempt), nil
	}
	if activity.HasHeartbeatDetails(ctx) {
		var details string
		err := activity.GetHeartbeatDetails(ctx, &details)
		return fmt.Sprint("attempt ", attempt, " after ", details), err
	}
	for {
		activity.RecordHeartbeat(ctx, "half the way")
		select {
		case <-ctx.Done():
			return "", temporal.NewApplicationError(context.Cause(ctx).Error(), "Stopped")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Toiling has one activity, for the workers of a queue.
func Toiling(ctx workflow.Context, queue string, waits bool) (result string, err error) {
	err = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:          "toil",
		TaskQueue:           queue,
		StartToCloseTimeout: time.Hour,
		HeartbeatTimeout:    2 * time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 5},
	}), Toil, waits).Get(ctx, &result)
	return result, err
}

// isReference says whether the server is Temporal's.
func isReference() bool { return os.Getenv("LISTS_COME_LATE") != "" }

func execution(run client.WorkflowRun) *common.WorkflowExecution {
	return &common.WorkflowExecution{WorkflowId: run.GetID()}
}

// toils is a run whose activity is so far.
func (w *world) toils(queue string, waits bool, isSo func(*workflowpb.PendingActivityInfo) bool) client.WorkflowRun {
	run := w.start(client.StartWorkflowOptions{}, Toiling, queue, waits)
	w.pending(run, isSo)
	return run
}

// pending is the only pending activity of a run, once it is so far.
func (w *world) pending(run client.WorkflowRun, isSo func(*workflowpb.PendingActivityInfo) bool) *workflowpb.PendingActivityInfo {
	var pending *workflowpb.PendingActivityInfo
	w.until(func() bool {
		open := w.described(run).PendingActivities
		if len(open) == 1 {
			pending = open[0]
		}
		return len(open) == 1 && isSo(pending)
	})
	return pending
}

func exists(*workflowpb.PendingActivityInfo) bool { return true }
func hasReported(pending *workflowpb.PendingActivityInfo) bool {
	return pending.HeartbeatDetails != nil
}
func isPaused(pending *workflowpb.PendingActivityInfo) bool {
	return pending.State == enums.PENDING_ACTIVITY_STATE_PAUSED
}

// soon lets workers report often, so that they hear soon.
var soon = worker.Options{MaxHeartbeatThrottleInterval: 100 * time.Millisecond}

func activitiesArePausedAndUnpaused(w *world) {
	defer w.serve(soon)()
	run := w.toils(w.queue, true, hasReported)
	pause := &workflowservice.PauseActivityRequest{
		Namespace: w.namespace, Execution: execution(run), Activity: &workflowservice.PauseActivityRequest_Id{Id: "toil"},
		Identity: "operator", Reason: "why",
	}
	service := w.WorkflowService()
	_, err := service.PauseActivity(w, pause)
	w.must(err)
	pending := w.pending(run, isPaused)
	w.equal(pending.Attempt, int32(2), "the next attempt")
	w.equal(pending.LastFailure.GetMessage(), activity.ErrActivityPaused.Error(), "what the attempt has heard")
	manual := pending.GetPauseInfo().GetManual()
	w.equal([]string{manual.GetIdentity(), manual.GetReason()}, []string{"operator", "why"}, "who has paused it, and why")
	w.that(pending.Paused && pending.HeartbeatDetails != nil, "the report is kept", pending)
	w.lists(w.own()+" AND TemporalPauseInfo = 'property:activityType=Toil'", run.GetID())
	_, err = service.UnpauseActivity(w, &workflowservice.UnpauseActivityRequest{
		Namespace: w.namespace, Execution: execution(run), Activity: &workflowservice.UnpauseActivityRequest_Type{Type: "Toil"},
	})
	w.must(err)
	var result string
	w.must(run.Get(w, &result))
	w.equal(result, "attempt 2 after half the way", "the result")
	w.lists(w.own() + " AND TemporalPauseInfo = 'property:activityType=Toil'")
	_, err = service.PauseActivity(w, pause)
	w.that(errors.As(err, new(*serviceerror.NotFound)), "a pause of a closed run", err)
}

func activitiesAreReset(w *world) {
	defer w.serve(soon)()
	run := w.toils(w.queue, true, hasReported)
	reset := &workflowservice.ResetActivityRequest{
		Namespace: w.namespace, Execution: execution(run), Activity: &workflowservice.ResetActivityRequest_Id{Id: "nobody"},
	}
	service := w.WorkflowService()
	_, err := service.ResetActivity(w, reset)
	w.that(errors.As(err, new(*serviceerror.NotFound)), "a reset of nobody", err)
	reset.Activity = &workflowservice.ResetActivityRequest_Id{Id: "toil"}
	_, err = service.ResetActivity(w, reset)
	w.must(err)
	var result string
	w.must(run.Get(w, &result))
	w.equal(result, "attempt 2 after half the way", "the result")
	var started []string
	for _, event := range w.events(run.GetID(), run.GetRunID()) {
		if attributes := event.GetActivityTaskStartedEventAttributes(); attributes != nil {
			started = append(started, fmt.Sprint(attributes.Attempt, " after ", attributes.LastFailure.GetMessage()))
		}
	}
	w.equal(started, []string{"2 after " + activity.ErrActivityReset.Error()}, "what the attempt before has heard")
}

func activitiesGetOtherOptions(w *world) {
	defer w.serve(soon)()
	nowhere := w.queue + "-nowhere"
	run := w.toils(nowhere, false, exists)
	service := w.WorkflowService()
	change := func(run client.WorkflowRun, options *activitypb.ActivityOptions, paths ...string) *activitypb.ActivityOptions {
		request := &workflowservice.UpdateActivityOptionsRequest{
			Namespace: w.namespace, Execution: execution(run), Activity: &workflowservice.UpdateActivityOptionsRequest_Id{Id: "toil"},
			ActivityOptions: options, RestoreOriginal: options == nil,
		}
		if options != nil {
			request.UpdateMask = &fieldmaskpb.FieldMask{Paths: paths}
		}
		changed, err := service.UpdateActivityOptions(w, request)
		w.must(err)
		return changed.GetActivityOptions()
	}
	other := w.toils(nowhere, false, exists)
	shorter := &activitypb.ActivityOptions{StartToCloseTimeout: durationpb.New(7 * time.Second)}
	changed := change(other, shorter, "start_to_close_timeout")
	w.equal(changed.GetStartToCloseTimeout().AsDuration(), 7*time.Second, "the shorter timeout")
	w.equal(w.pending(other, exists).GetActivityOptions().GetStartToCloseTimeout().AsDuration(), 7*time.Second, "it is shown")
	w.equal(change(other, nil).GetStartToCloseTimeout().AsDuration(), time.Hour, "the timeout of the workflow")

	moved := &activitypb.ActivityOptions{
		TaskQueue:   &taskqueue.TaskQueue{Name: w.queue},
		RetryPolicy: &common.RetryPolicy{MaximumAttempts: 2},
	}
	changed = change(run, moved, "task_queue.name", "retry_policy.maximum_attempts")
	w.equal(changed.GetTaskQueue().GetName(), w.queue, "the other queue")
	w.equal(changed.GetRetryPolicy().GetMaximumAttempts(), int32(2), "fewer attempts")
	w.equal(changed.GetHeartbeatTimeout().AsDuration(), 2*time.Minute, "what was not named")
	var result string
	w.must(run.Get(w, &result))
	w.equal(result, "attempt 1", "the result, of the other queue")
}

func runsGetOtherOptions(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Register)
	overridden := func(override client.VersioningOverride) client.UpdateWorkflowExecutionOptionsRequest {
		return client.UpdateWorkflowExecutionOptionsRequest{
			WorkflowId: run.GetID(),
			WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
				VersioningOverride: &client.VersioningOverrideChange{Value: override},
			},
		}
	}
	var auto client.VersioningOverride = &client.AutoUpgradeVersioningOverride{}
	changed, err := w.UpdateWorkflowExecutionOptions(w, overridden(auto))
	w.must(err)
	w.equal(changed.VersioningOverride, auto, "an override")
	unset := overridden(nil)
	changed, err = w.UpdateWorkflowExecutionOptions(w, unset)
	w.must(err)
	w.that(changed.VersioningOverride == nil, "it is unset", changed)
	request := &workflowservice.UpdateWorkflowExecutionOptionsRequest{
		Namespace: w.namespace, WorkflowExecution: execution(run), Identity: "operator",
		WorkflowExecutionOptions: &workflowpb.WorkflowExecutionOptions{Priority: &common.Priority{PriorityKey: 1}},
		UpdateMask:               &fieldmaskpb.FieldMask{Paths: []string{"priority"}},
	}
	service := w.WorkflowService()
	_, err = service.UpdateWorkflowExecutionOptions(w, request)
	changes := 3
	if isReference() {
		// A Temporal server of 1.29 knows of no priority here.
		w.that(errors.As(err, new(*serviceerror.InvalidArgument)), "a priority", err)
		changes = 2
	} else {
		w.must(err)
		w.equal(w.described(run).GetWorkflowExecutionInfo().GetPriority().GetPriorityKey(), int32(1), "the priority that is shown")
	}
	w.put(run.GetID(), 0)
	w.must(run.Get(w, nil))
	updated := enums.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED
	w.equal(count(w.events(run.GetID(), run.GetRunID()), updated), changes, "an event for each change")
	_, err = w.UpdateWorkflowExecutionOptions(w, unset)
	w.that(errors.As(err, new(*serviceerror.NotFound)), "options of a closed run", err)
}

func runsArePausedAndUnpaused(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Register)
	w.until(func() bool {
		return count(w.events(run.GetID(), run.GetRunID()), enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED) == 1
	})
	service := w.WorkflowService()
	_, err := service.PauseWorkflowExecution(w, &workflowservice.PauseWorkflowExecutionRequest{
		Namespace: w.namespace, WorkflowId: run.GetID(), Identity: "operator", Reason: "why", RequestId: uuid.NewString(),
	})
	if isReference() {
		// A Temporal server has it turned off.
		w.that(errors.As(err, new(*serviceerror.Unimplemented)), "a pause", err)
		return
	}
	w.must(err)
	paused := w.described(run)
	w.equal(paused.GetWorkflowExecutionInfo().GetStatus(), enums.WORKFLOW_EXECUTION_STATUS_PAUSED, "the status")
	info := paused.GetWorkflowExtendedInfo().GetPauseInfo()
	w.equal([]string{info.GetIdentity(), info.GetReason()}, []string{"operator", "why"}, "who has paused it, and why")
	w.put(run.GetID(), 0)
	scheduled := enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED
	w.equal(count(w.events(run.GetID(), run.GetRunID()), scheduled), 1, "workflow tasks while it is paused")
	_, err = service.UnpauseWorkflowExecution(w, &workflowservice.UnpauseWorkflowExecutionRequest{
		Namespace: w.namespace, WorkflowId: run.GetID(), Identity: "operator", Reason: "why", RequestId: uuid.NewString(),
	})
	w.must(err)
	w.must(run.Get(w, nil))
}
