package main

import (
	"context"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Relayed has an activity, a child that it signals, and a run that follows, once it is signalled; a query and an update.
func Relayed(ctx workflow.Context, follows bool) error {
	if !follows {
		return nil
	}
	if err := workflow.SetQueryHandler(ctx, "ask", func() (string, error) { return "asked", nil }); err != nil {
		return err
	}
	if err := workflow.SetUpdateHandler(ctx, "change", func(workflow.Context) error { return nil }); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "go").Receive(ctx, nil)
	ctx = workflow.WithValue(ctx, traceKey{}, "workflow")
	called := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	if err := workflow.ExecuteActivity(called, SucceedAt, 1).Get(ctx, nil); err != nil {
		return err
	}
	child := workflow.ExecuteChildWorkflow(childContext(ctx, "child", enums.PARENT_CLOSE_POLICY_TERMINATE), Child, "signal")
	if err := child.SignalChildWorkflow(ctx, "end", nil).Get(ctx, nil); err != nil {
		return err
	}
	if err := child.Get(ctx, nil); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, Relayed, false)
}

type traceKey struct{}

// trace propagates a text of a context in a header.
type trace struct{}

func (trace) Inject(ctx context.Context, header workflow.HeaderWriter) error {
	return setTrace(ctx.Value(traceKey{}), header)
}

func (trace) InjectFromWorkflow(ctx workflow.Context, header workflow.HeaderWriter) error {
	return setTrace(ctx.Value(traceKey{}), header)
}

func (trace) Extract(ctx context.Context, header workflow.HeaderReader) (context.Context, error) {
	payload, _ := header.Get("trace")
	return context.WithValue(ctx, traceKey{}, textOf(payload)), nil
}

func (trace) ExtractToWorkflow(ctx workflow.Context, header workflow.HeaderReader) (workflow.Context, error) {
	payload, _ := header.Get("trace")
	return workflow.WithValue(ctx, traceKey{}, textOf(payload)), nil
}

func setTrace(text any, header workflow.HeaderWriter) error {
	payload, err := converter.GetDefaultDataConverter().ToPayload(text)
	header.Set("trace", payload)
	return err
}

func textOf(payload *common.Payload) (text string) {
	// An absent one is an empty text.
	_ = converter.GetDefaultDataConverter().FromPayload(payload, &text)
	return text
}

// noting notes the headers that come in.
type noting struct{ interceptor.InterceptorBase }

func (noting) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &notingActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

func (noting) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &notingWorkflow{interceptor.WorkflowInboundInterceptorBase{Next: next}}
}

type notingActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

func (n *notingActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	see(activity.GetInfo(ctx).WorkflowExecution.ID, "activity with "+textOf(interceptor.Header(ctx)["trace"]))
	return n.Next.ExecuteActivity(ctx, in)
}

type notingWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
}

func noteIn(ctx workflow.Context, what string) {
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	see(id, what+" with "+textOf(interceptor.WorkflowHeader(ctx)["trace"]))
}

func (n *notingWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	noteIn(ctx, "workflow")
	return n.Next.ExecuteWorkflow(ctx, in)
}

func (n *notingWorkflow) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	noteIn(ctx, "signal")
	return n.Next.HandleSignal(ctx, in)
}

func (n *notingWorkflow) HandleQuery(ctx workflow.Context, in *interceptor.HandleQueryInput) (any, error) {
	noteIn(ctx, "query")
	return n.Next.HandleQuery(ctx, in)
}

func (n *notingWorkflow) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	noteIn(ctx, "update")
	return n.Next.ExecuteUpdate(ctx, in)
}

// headers is those of a history's events, by the kind of event.
func headers(events []*history.HistoryEvent) map[enums.EventType]string {
	found := map[enums.EventType]string{}
	for _, event := range events {
		header := event.GetWorkflowExecutionStartedEventAttributes().GetHeader()
		switch event.EventType {
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
			header = event.GetWorkflowExecutionSignaledEventAttributes().GetHeader()
		case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
			header = event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetHeader()
		case enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			header = event.GetActivityTaskScheduledEventAttributes().GetHeader()
		case enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
			header = event.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetHeader()
		}
		if header != nil {
			found[event.EventType] = textOf(header.Fields["trace"])
		}
	}
	return found
}

func headersTravelWithEverything(w *world) {
	w.use(client.Options{ContextPropagators: []workflow.ContextPropagator{trace{}}}, &noting{})
	defer w.serve(worker.Options{})()
	with := func(text string) context.Context { return context.WithValue(w.Context, traceKey{}, text) }
	id := w.id()
	run, err := w.ExecuteWorkflow(with("start"), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue}, Relayed, true)
	w.must(err)
	first := run.GetRunID()
	w.remember(id, first)
	_, err = w.QueryWorkflow(with("query"), id, "", "ask")
	w.must(err)
	update, err := w.UpdateWorkflow(with("update"), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: "change", WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	w.must(err)
	w.must(update.Get(w, nil))
	w.must(w.SignalWorkflow(with("signal"), id, "", "go", nil))
	w.must(run.Get(w, nil))
	for _, what := range []string{
		"workflow with start", "query with query", "update with update", "signal with signal", "activity with workflow",
	} {
		w.that(timesSeen(id, what) > 0, "what arrived", what)
	}
	runs := w.chain(id, first)
	w.equal(len(runs), 2, "runs")
	w.equal(headers(runs[0]), map[enums.EventType]string{
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:               "start",
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:       "update",
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:              "signal",
		enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:                  "workflow",
		enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED: "workflow",
	}, "in the history")
	w.equal(headers(runs[1]), map[enums.EventType]string{
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED: "workflow",
	}, "in the run that follows")
	w.equal(headers(w.events(id+"-child", "")), map[enums.EventType]string{
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:  "workflow",
		enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED: "workflow",
	}, "in the child")
}
