package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"everlog/tests/sdk/patience"
)

// world is what a case works with: a client, a queue of its own, and what it has started.
type world struct {
	context.Context
	client.Client
	address   string
	namespace string
	queue     string

	mutex   sync.Mutex
	runs    []workflow.Execution
	replays worker.WorkflowReplayerOptions
}

// unmet is a claim that does not hold; it ends its case.
type unmet struct{ why string }

func (w *world) that(ok bool, what string, details ...any) {
	if !ok {
		panic(unmet{fmt.Sprintln(append([]any{what + ":"}, details...)...)})
	}
}

func (w *world) equal(actual, expected any, what string) {
	w.that(reflect.DeepEqual(actual, expected), what, "expected", expected, "found", actual)
}

func (w *world) must(err error) {
	if err != nil {
		panic(unmet{err.Error()})
	}
}

// with is the same with a client of its own, on the same connection.
func (w *world) with(options client.Options) *world {
	options.Logger = quiet
	c, err := client.NewClientFromExistingWithContext(w, w.Client, options)
	w.must(err)
	namespace := cmp.Or(options.Namespace, w.namespace)
	return &world{Context: w.Context, Client: c, address: w.address, namespace: namespace, queue: w.queue}
}

// use gives the case a client of its own, on the same connection, that its replays are like.
func (w *world) use(options client.Options, interceptors ...interceptor.Interceptor) {
	for _, one := range interceptors {
		options.Interceptors = append(options.Interceptors, one)
		w.replays.Interceptors = append(w.replays.Interceptors, one)
	}
	w.Client = w.with(options).Client
	w.replays.DataConverter, w.replays.FailureConverter = options.DataConverter, options.FailureConverter
	w.replays.ContextPropagators = options.ContextPropagators
}

func (w *world) id() string { return "go-" + uuid.NewString() }

// start starts a workflow on the case's queue and remembers it for its replay.
func (w *world) start(options client.StartWorkflowOptions, definition any, args ...any) client.WorkflowRun {
	run, err := w.tryStart(options, definition, args...)
	w.must(err)
	return run
}

func (w *world) tryStart(options client.StartWorkflowOptions, definition any, args ...any) (client.WorkflowRun, error) {
	if options.ID == "" {
		options.ID = w.id()
	}
	options.TaskQueue = w.queue
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	run, err := w.ExecuteWorkflow(w, options, definition, args...)
	if err == nil {
		w.remember(run.GetID(), run.GetRunID())
	}
	return run, err
}

// remember takes ids, as a client's handle names another run once its result has been waited for.
func (w *world) remember(id, run string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.runs = append(w.runs, workflow.Execution{ID: id, RunID: run})
}

// serve runs a worker with everything registered until the returned function is called.
func (w *world) serve(options worker.Options) (stop func()) {
	served := worker.New(w.Client, w.queue, options)
	register(served)
	w.must(served.Start())
	return served.Stop
}

// until looks again and again until it is so; a case has a deadline.
func (w *world) until(isSo func() bool) {
	for !isSo() {
		w.must(w.Err())
		time.Sleep(50 * time.Millisecond)
	}
}

// events is the history of a run, in order.
func (w *world) events(id, run string) []*history.HistoryEvent {
	pages := w.GetWorkflowHistory(w, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var events []*history.HistoryEvent
	for pages.HasNext() {
		event, err := pages.Next()
		w.must(err)
		events = append(events, event)
	}
	return events
}

// chain is the histories of a run and of all that continue it.
func (w *world) chain(id, run string) [][]*history.HistoryEvent {
	var runs [][]*history.HistoryEvent
	for run != "" {
		events := w.events(id, run)
		runs = append(runs, events)
		run = successor(events)
	}
	return runs
}

// successor is the run that goes on from this one, however it has ended; or nothing.
func successor(events []*history.HistoryEvent) string {
	last := events[len(events)-1]
	return cmp.Or(
		last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(),
		last.GetWorkflowExecutionCompletedEventAttributes().GetNewExecutionRunId(),
		last.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId(),
		last.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId(),
	)
}

func count(events []*history.HistoryEvent, kind enums.EventType) int {
	found := 0
	for _, event := range events {
		if event.EventType == kind {
			found++
		}
	}
	return found
}

// closeAndReplay ends what is still open and replays each history that the case has made: its runs, what goes on from
// them, and their children.
func (w *world) closeAndReplay() (replayed, children int) {
	replayer, err := worker.NewWorkflowReplayerWithOptions(w.replays)
	w.must(err)
	register(replayer)
	looked := map[workflow.Execution]bool{}
	// It grows meanwhile.
	for n := 0; n < len(w.runs); n++ {
		run := w.runs[n]
		if looked[run] {
			continue
		}
		looked[run] = true
		// It fails where the workflow has ended by itself.
		_ = w.TerminateWorkflow(w, run.ID, "", "the case is over")
		events := w.events(run.ID, run.RunID)
		if next := successor(events); next != "" {
			w.remember(run.ID, next)
		}
		for _, event := range events {
			if child := event.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution(); child != nil {
				w.remember(child.WorkflowId, child.RunId)
			}
		}
		// A run that no worker ever completed a task of has nothing to replay.
		if count(events, enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED) == 0 {
			continue
		}
		err = replayer.ReplayWorkflowHistoryWithOptions(nil, &history.History{Events: events}, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: run,
		})
		w.that(err == nil, "the replay of "+run.ID+", run "+run.RunID, err)
		replayed++
		if events[0].GetWorkflowExecutionStartedEventAttributes().GetParentWorkflowExecution() != nil {
			children++
		}
	}
	return replayed, children
}

// runCase prints the line of a case and says whether it passed.
func runCase(address string, c client.Client, name string, function func(*world)) (passed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience.Most())
	defer cancel()
	w := &world{
		Context: ctx, Client: c, address: address, namespace: client.DefaultNamespace, queue: "go-" + name + "-" + uuid.NewString(),
	}
	begun := time.Now()
	var replayed, children int
	defer func() {
		switch why := recover().(type) {
		case nil:
			fmt.Printf("ok go.%s (%.1f s, replayed %d, %d of children)\n", name, time.Since(begun).Seconds(), replayed, children)
			passed = true
		case unmet:
			fmt.Printf("FAIL go.%s: %s\n", name, oneLine(why.why))
		default:
			fmt.Printf("FAIL go.%s: %s\n", name, oneLine(fmt.Sprint(why)))
		}
	}()
	function(w)
	replayed, children = w.closeAndReplay()
	w.that(replayed > 0, "nothing to replay")
	w.that(!errors.Is(ctx.Err(), context.DeadlineExceeded), "not done in time")
	return false
}
