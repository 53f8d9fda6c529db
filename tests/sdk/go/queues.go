package main

import (
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	workers "go.temporal.io/api/worker/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
)

// Batch calls that many activities at once.
func Batch(ctx workflow.Context, count int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second})
	var calls []workflow.Future
	for range count {
		calls = append(calls, workflow.ExecuteActivity(ctx, SucceedAt, 1))
	}
	for _, call := range calls {
		if err := call.Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func queuesHoldTheirActivitiesBack(w *world) {
	defer w.serve(worker.Options{TaskQueueActivitiesPerSecond: 5})()
	begun := time.Now()
	run := w.start(client.StartWorkflowOptions{}, Batch, 20)
	w.must(run.Get(w, nil))
	taken := time.Since(begun)
	w.equal(timesSeen(run.GetID(), "succeed at"), 20, "activities")
	// What a queue may hand out at once is the server's: a second's worth, and some more where it has parts.
	w.that(taken > 2500*time.Millisecond, "20 activities at 5 a second", taken)
	described, err := w.DescribeTaskQueue(w, w.queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	w.must(err)
	w.that(len(described.Pollers) > 0, "somebody polls")
	for _, poller := range described.Pollers {
		w.equal(poller.RatePerSecond, 5.0, "what its pollers say")
	}
}

// configure changes the configuration of the case's queue of activities, and waits until its home has it.
func (w *world) configure(change *workflowservice.UpdateTaskQueueConfigRequest) *taskqueue.TaskQueueConfig {
	change.Namespace, change.Identity = w.namespace, "operator"
	change.TaskQueue, change.TaskQueueType = w.queue, enums.TASK_QUEUE_TYPE_ACTIVITY
	changed, err := w.WorkflowService().UpdateTaskQueueConfig(w, change)
	w.must(err)
	told := w.describeActivities(true)
	w.that(proto.Equal(told.Config, changed.Config), "what is told of it", told.Config, changed.Config)
	return changed.Config
}

func (w *world) describeActivities(config bool) *workflowservice.DescribeTaskQueueResponse {
	told, err := w.WorkflowService().DescribeTaskQueue(w, &workflowservice.DescribeTaskQueueRequest{
		Namespace: w.namespace, TaskQueue: &taskqueue.TaskQueue{Name: w.queue},
		TaskQueueType: enums.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true, ReportConfig: config,
	})
	w.must(err)
	return told
}

func queuesAreConfigured(w *world) {
	defer w.serve(worker.Options{DisableEagerActivities: true})()
	limit := func(rate float32, reason string) *workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate {
		return &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{
			RateLimit: &taskqueue.RateLimit{RequestsPerSecond: rate}, Reason: reason,
		}
	}
	config := w.configure(&workflowservice.UpdateTaskQueueConfigRequest{
		UpdateQueueRateLimit:              limit(0, "maintenance"),
		UpdateFairnessKeyRateLimitDefault: limit(100, "fair"),
	})
	w.equal(config.QueueRateLimit.Metadata.Reason, "maintenance", "why it is stopped")
	w.equal(config.FairnessKeysRateLimitDefault.RateLimit.RequestsPerSecond, float32(100), "of each key")
	run := w.start(client.StartWorkflowOptions{}, Batch, 5)
	w.until(func() bool { return w.describeActivities(false).Stats.GetApproximateBacklogCount() == 5 })
	source := w.describeActivities(false).EffectiveRateLimit.RateLimitSource
	w.equal(source, enums.RATE_LIMIT_SOURCE_API, "who says how much may go")
	w.equal(timesSeen(run.GetID(), "succeed at"), 0, "activities of a stopped queue")
	w.configure(&workflowservice.UpdateTaskQueueConfigRequest{
		UpdateQueueRateLimit: &workflowservice.UpdateTaskQueueConfigRequest_RateLimitUpdate{Reason: "over"},
	})
	w.must(run.Get(w, nil))
	w.equal(timesSeen(run.GetID(), "succeed at"), 5, "activities")
}

// said is what workers have last said of themselves that poll the case's queue.
func (w *world) said() []*workers.WorkerHeartbeat {
	answer, err := w.WorkflowService().ListWorkers(w, &workflowservice.ListWorkersRequest{
		Namespace: w.namespace, Query: fmt.Sprintf("TaskQueue = '%s'", w.queue),
	})
	w.must(err)
	var said []*workers.WorkerHeartbeat
	for _, info := range answer.GetWorkersInfo() {
		said = append(said, info.WorkerHeartbeat)
	}
	return said
}

func workersTellOfThemselves(w *world) {
	telling := w.with(client.Options{Identity: w.id(), WorkerHeartbeatInterval: time.Second})
	defer telling.Close()
	stop := telling.serve(worker.Options{})
	defer stop()
	var said []*workers.WorkerHeartbeat
	w.until(func() bool {
		said = w.said()
		return len(said) > 0
	})
	first := said[0]
	w.equal([]string{first.SdkName, first.TaskQueue}, []string{"temporal-go", w.queue}, "who it is")
	w.equal(first.Status, enums.WORKER_STATUS_RUNNING, "how it is")
	w.must(w.start(client.StartWorkflowOptions{}, Batch, 3).Get(w, nil))
	// It tells again and again.
	w.until(func() bool { return w.said()[0].ActivityTaskSlotsInfo.GetTotalProcessedTasks() == 3 })
	stop()
	w.until(func() bool {
		said = w.said()
		return said[0].Status == enums.WORKER_STATUS_SHUTTING_DOWN
	})
	w.equal(len(said), 1, "workers")
	w.equal(said[0].WorkerInstanceKey, first.WorkerInstanceKey, "it is still the same")
}
