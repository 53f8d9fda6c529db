package main

import (
	"context"
	"sync/atomic"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
)

// dialCounting gives the case a client of its own, and counts the activities that come with the answers to its tasks.
func (w *world) dialCounting() (handed *atomic.Int64) {
	handed = new(atomic.Int64)
	count := func(
		ctx context.Context, method string, request, answer any,
		c *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		err := call(ctx, method, request, answer, c, options...)
		if completed, ok := answer.(*workflowservice.RespondWorkflowTaskCompletedResponse); ok && err == nil {
			handed.Add(int64(len(completed.ActivityTasks)))
		}
		return err
	}
	connection := client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(count)}}
	c, err := client.DialContext(w, client.Options{HostPort: w.address, Logger: quiet, ConnectionOptions: connection})
	w.must(err)
	w.Client = c
	return handed
}

func eagerStartsBringTheirTaskAlong(w *world) {
	// Only a worker of the same client can take the task.
	w.use(client.Options{})
	slow := w.start(client.StartWorkflowOptions{EnableEagerStart: true}, Child, "succeed")
	defer w.serve(worker.Options{})()
	w.equal(w.result(slow), "done", "one that nobody was there for")
	run := w.start(client.StartWorkflowOptions{EnableEagerStart: true}, Child, "succeed")
	w.equal(w.result(run), "done", "the result")
	accepted := func(run client.WorkflowRun) bool {
		return w.events(run.GetID(), run.GetRunID())[0].GetWorkflowExecutionStartedEventAttributes().GetEagerExecutionAccepted()
	}
	w.equal([]bool{accepted(slow), accepted(run)}, []bool{false, true}, "which of them was eager")
	var kinds []enums.EventType
	for _, event := range w.events(run.GetID(), run.GetRunID()) {
		kinds = append(kinds, event.EventType)
	}
	w.equal(kinds, []enums.EventType{
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
		enums.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
		enums.EVENT_TYPE_WORKFLOW_TASK_STARTED,
		enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
	}, "the history")
}

func eagerActivitiesRunOnce(w *world) {
	handed := w.dialCounting()
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Batch, 5)
	w.must(run.Get(w, nil))
	w.equal(handed.Load(), int64(3), "activities in the answer to the task: a worker asks for no more")
	w.equal(timesSeen(run.GetID(), "succeed at"), 5, "what ran")
}
