package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/batch/v1"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
)

var (
	flavour = temporal.NewSearchAttributeKeyKeyword("GoFlavour")
	scoops  = temporal.NewSearchAttributeKeyInt64("GoScoops")
	price   = temporal.NewSearchAttributeKeyFloat64("GoPrice")
	served  = temporal.NewSearchAttributeKeyBool("GoServed")
	opened  = temporal.NewSearchAttributeKeyTime("GoOpened")
	topping = temporal.NewSearchAttributeKeyKeywordList("GoToppings")
	remark  = temporal.NewSearchAttributeKeyString("GoRemark")
)

// The cases of lists and batches: by their names only.
var visibility = map[string]func(*world){
	"runs_are_listed_and_counted":         runsAreListedAndCounted,
	"typed_attributes_choose_runs":        typedAttributesChooseRuns,
	"batches_steer_the_runs_of_a_query":   batchesSteerTheRunsOfAQuery,
	"what_is_no_query_is_refused":         whatIsNoQueryIsRefused,
	"children_are_found_by_their_parents": childrenAreFoundByTheirParents,
}

// own is what the runs of this case alone match.
func (w *world) own() string { return fmt.Sprintf("TaskQueue = '%s'", w.queue) }

// settles claims that a list or a count is exact; at a Temporal server it becomes so.
func (w *world) settles(look func() any, expected any, what string) {
	last := look()
	if os.Getenv("LISTS_COME_LATE") != "" {
		w.until(func() bool {
			last = look()
			return reflect.DeepEqual(last, expected)
		})
	}
	w.equal(last, expected, what)
}

// list is the workflow ids of all pages, in their order.
func (w *world) list(query string, pageSize int32) []string {
	ids := []string{}
	for token := []byte(nil); len(ids) == 0 || len(token) > 0; {
		page, err := w.ListWorkflow(w, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: pageSize, NextPageToken: token,
		})
		w.must(err)
		for _, info := range page.Executions {
			ids = append(ids, info.Execution.WorkflowId)
		}
		if token = page.NextPageToken; len(token) == 0 {
			break
		}
	}
	return ids
}

func (w *world) count(query string) *workflowservice.CountWorkflowExecutionsResponse {
	counted, err := w.CountWorkflow(w, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	w.must(err)
	return counted
}

// lists claims that a query finds these, in whatever order, and that a count agrees.
func (w *world) lists(query string, expected ...string) {
	slices.Sort(expected)
	w.settles(func() any { return slices.Sorted(slices.Values(w.list(query, 1000))) }, slices.Clip(append([]string(nil), expected...)), query)
	w.settles(func() any { return w.count(query).Count }, int64(len(expected)), "the count of "+query)
}

func runsAreListedAndCounted(w *world) {
	defer w.serve(worker.Options{})()
	var ids []string
	for range 12 {
		ids = append(ids, w.start(client.StartWorkflowOptions{}, Register).GetID())
	}
	w.lists(w.own(), ids...)
	for _, id := range ids[:2] {
		w.put(id, 0)
		w.must(w.GetWorkflow(w, id, "").Get(w, nil))
	}
	w.must(w.TerminateWorkflow(w, ids[2], "", "enough"))
	groups := func() any {
		found := map[string]int64{}
		counted := w.count(w.own() + " GROUP BY ExecutionStatus")
		for _, group := range counted.Groups {
			var status string
			w.must(converter.GetDefaultDataConverter().FromPayload(group.GroupValues[0], &status))
			found[status] = group.Count
		}
		w.equal(counted.Count, found["Running"]+found["Completed"]+found["Terminated"], "the sum of the groups")
		return found
	}
	w.settles(groups, map[string]int64{"Running": 9, "Completed": 2, "Terminated": 1}, "counts by status")
	whole := w.list(w.own(), 1000)
	w.equal(slices.Sorted(slices.Values(whole[9:])), slices.Sorted(slices.Values(ids[:3])), "closed runs come last")
	for _, size := range []int32{1, 5, 12} {
		w.equal(w.list(w.own(), size), whole, fmt.Sprint("in pages of ", size))
	}
	w.lists(w.own()+" AND ExecutionStatus = 'Completed'", ids[:2]...)
	scanned, err := w.ScanWorkflow(w, &workflowservice.ScanWorkflowExecutionsRequest{Query: w.own()})
	w.must(err)
	w.equal(len(scanned.Executions), 12, "a scan")
}

func typedAttributesChooseRuns(w *world) {
	types := map[string]enums.IndexedValueType{}
	for _, key := range []temporal.SearchAttributeKey{flavour, scoops, price, served, opened, topping, remark} {
		types[key.GetName()] = key.GetValueType()
	}
	_, err := w.OperatorService().AddSearchAttributes(w, &operatorservice.AddSearchAttributesRequest{
		Namespace: client.DefaultNamespace, SearchAttributes: types,
	})
	w.must(err)
	moment := time.Date(2026, 2, 3, 4, 5, 6, 789_000_000, time.UTC)
	options := client.StartWorkflowOptions{
		TypedSearchAttributes: temporal.NewSearchAttributes(
			flavour.ValueSet("dark chocolate"), scoops.ValueSet(3), price.ValueSet(4.25), served.ValueSet(false),
			opened.ValueSet(moment), topping.ValueSet([]string{"nuts", "Cream"}), remark.ValueSet("Melts quickly in the sun"),
		),
		Memo: map[string]any{"of": "the case"},
	}
	var full client.WorkflowRun
	start := func() bool {
		full, err = w.tryStart(options, Register)
		return err == nil
	}
	// A Temporal server may take a moment to know a name.
	if !start() && os.Getenv("LISTS_COME_LATE") != "" {
		w.until(start)
	}
	w.must(err)
	empty := w.start(client.StartWorkflowOptions{}, Register)
	defer w.serve(worker.Options{})()
	w.lists(w.own(), full.GetID(), empty.GetID())
	page, err := w.ListWorkflow(w, &workflowservice.ListWorkflowExecutionsRequest{Query: w.own() + " AND GoScoops = 3"})
	w.must(err)
	w.equal(len(page.Executions), 1, "runs with three scoops")
	found := page.Executions[0]
	var toppings []string
	w.must(converter.GetDefaultDataConverter().FromPayload(found.SearchAttributes.IndexedFields["GoToppings"], &toppings))
	w.equal(toppings, []string{"nuts", "Cream"}, "a list as it was given")
	kind := string(found.SearchAttributes.IndexedFields["GoToppings"].Metadata["type"])
	w.equal(kind, "KeywordList", "the type stands beside the value")
	w.that(found.Memo.GetFields()["of"] != nil, "the memo", found)
	both, one, other, none := []string{full.GetID(), empty.GetID()}, []string{full.GetID()}, []string{empty.GetID()}, []string{}
	rows := []struct {
		query    string
		expected []string
	}{
		{"GoFlavour = 'dark chocolate'", one}, {"GoFlavour STARTS_WITH 'dark'", one}, {"GoFlavour < 'e'", one}, {"GoFlavour = 'Dark chocolate'", none},
		{"GoScoops >= 3", one}, {"GoScoops NOT IN (1, 2)", one}, {"GoScoops > 3", none},
		{"GoPrice BETWEEN 4 AND 4.5", one}, {"GoServed = false", one}, {"GoServed = true", none},
		{"GoOpened = '2026-02-03T04:05:06.789Z'", one}, {"GoOpened < '2026-02-03T04:05:06.789Z'", none},
		{"GoToppings = 'nuts'", one}, {"GoToppings IN ('Cream', 'sauce')", one}, {"GoToppings = 'sauce'", none},
		{"GoRemark = 'SUN'", one}, {"GoRemark = 'melt'", none},
		{"GoFlavour IS NULL", other}, {"GoFlavour IS NOT NULL OR GoScoops IS NULL", both},
		{"WorkflowType = 'Register'", both}, {"WorkflowId = '" + empty.GetID() + "'", other},
	}
	for _, row := range rows {
		w.lists(fmt.Sprintf("%s AND (%s)", w.own(), row.query), row.expected...)
	}
	w.put(full.GetID(), 0)
	w.must(full.Get(w, nil))
}

func childrenAreFoundByTheirParents(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Busy)
	child := run.GetID() + "-child"
	w.until(func() bool {
		open := w.described(run)
		return len(open.PendingChildren) == 1 && open.PendingChildren[0].RunId != ""
	})
	w.lists(fmt.Sprintf("ParentWorkflowId = '%s' AND ParentRunId = '%s'", run.GetID(), run.GetRunID()), child)
	w.lists(fmt.Sprintf("RootWorkflowId = '%s'", run.GetID()), child, run.GetID())
	w.must(w.SignalWorkflow(w, run.GetID(), "", "end", nil))
	w.must(run.Get(w, nil))
	w.lists(fmt.Sprintf("ParentWorkflowId = '%s' AND ExecutionStatus = 'Canceled'", run.GetID()), child)
}

// batch starts a batch; its job. A Temporal server may not know yet that the one before has ended.
func (w *world) batch(request *workflowservice.StartBatchOperationRequest) string {
	request.Namespace, request.Reason, request.JobId = w.namespace, "a case", w.id()
	w.until(func() bool {
		_, err := w.WorkflowService().StartBatchOperation(w, request)
		var busy *serviceerror.ResourceExhausted
		if errors.As(err, &busy) {
			return false
		}
		w.must(err)
		return true
	})
	return request.JobId
}

// ended is the description of a job that has ended.
func (w *world) ended(job string) *workflowservice.DescribeBatchOperationResponse {
	var told *workflowservice.DescribeBatchOperationResponse
	w.until(func() bool {
		var err error
		told, err = w.WorkflowService().DescribeBatchOperation(w, &workflowservice.DescribeBatchOperationRequest{
			Namespace: w.namespace, JobId: job,
		})
		w.must(err)
		return told.State != enums.BATCH_OPERATION_STATE_RUNNING
	})
	return told
}

func batchesSteerTheRunsOfAQuery(w *world) {
	defer w.serve(worker.Options{})()
	var ids []string
	for range 4 {
		ids = append(ids, w.start(client.StartWorkflowOptions{}, Register).GetID())
	}
	w.lists(w.own(), ids...)
	input, err := converter.GetDefaultDataConverter().ToPayloads(7)
	w.must(err)
	job := w.batch(&workflowservice.StartBatchOperationRequest{
		VisibilityQuery: w.own(),
		Operation: &workflowservice.StartBatchOperationRequest_SignalOperation{
			SignalOperation: &batch.BatchOperationSignal{Signal: "put", Input: input, Identity: w.queue},
		},
	})
	told := w.ended(job)
	w.equal(told.State, enums.BATCH_OPERATION_STATE_COMPLETED, "its state")
	w.equal(told.OperationType, enums.BATCH_OPERATION_TYPE_SIGNAL, "its kind")
	w.equal([]int64{told.TotalOperationCount, told.CompleteOperationCount, told.FailureOperationCount}, []int64{4, 4, 0}, "its counts")
	for _, id := range ids {
		value, err := w.QueryWorkflow(w, id, "", "values")
		w.must(err)
		var values []int
		w.must(value.Get(&values))
		w.equal(values, []int{7}, "what each run was told, once")
	}
	job = w.batch(&workflowservice.StartBatchOperationRequest{
		Executions: []*common.WorkflowExecution{{WorkflowId: ids[0]}, {WorkflowId: ids[1]}},
		Operation: &workflowservice.StartBatchOperationRequest_CancellationOperation{
			CancellationOperation: &batch.BatchOperationCancellation{Identity: w.queue},
		},
	})
	w.equal(w.ended(job).CompleteOperationCount, int64(2), "two that are named")
	for number, id := range ids {
		asked := count(w.events(id, ""), enums.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED)
		w.equal(asked == 1, number < 2, "whose cancellation is requested")
	}
	w.must(w.TerminateWorkflow(w, ids[3], "", "enough"))
	job = w.batch(&workflowservice.StartBatchOperationRequest{
		VisibilityQuery: w.own(),
		Operation: &workflowservice.StartBatchOperationRequest_ResetOperation{
			ResetOperation: &batch.BatchOperationReset{Identity: w.queue, Options: &common.ResetOptions{
				Target: &common.ResetOptions_LastWorkflowTask{}, ResetReapplyType: enums.RESET_REAPPLY_TYPE_ALL_ELIGIBLE,
			}},
		},
	})
	w.equal(w.ended(job).CompleteOperationCount, int64(4), "closed runs are reset too")
	w.lists(w.own()+" AND ExecutionStatus = 'Running'", ids...)
	_, err = w.WorkflowService().StopBatchOperation(w, &workflowservice.StopBatchOperationRequest{
		Namespace: w.namespace, JobId: job, Reason: "late", Identity: w.queue,
	})
	var missing *serviceerror.NotFound
	w.that(errors.As(err, &missing), "a job that has ended is not stopped", err)
}

func whatIsNoQueryIsRefused(w *world) {
	defer w.serve(worker.Options{})()
	run := w.start(client.StartWorkflowOptions{}, Register)
	w.put(run.GetID(), 0)
	w.must(run.Get(w, nil))
	for _, query := range []string{"Nobody = 1", "WorkflowType =", "WorkflowType = 'x' LIMIT 1", uuid.NewString()} {
		_, err := w.ListWorkflow(w, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		var invalid *serviceerror.InvalidArgument
		w.that(errors.As(err, &invalid) && strings.HasPrefix(invalid.Message, "invalid query: "), query, err)
		_, err = w.CountWorkflow(w, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		w.that(errors.As(err, &invalid) && strings.HasPrefix(invalid.Message, "invalid query: "), query, err)
	}
}
