package main

import (
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

var (
	colour = temporal.NewSearchAttributeKeyKeyword("GoColour")
	weight = temporal.NewSearchAttributeKeyInt64("GoWeight")
	heavy  = temporal.NewSearchAttributeKeyBool("GoHeavy")
)

// Paint changes its search attributes and its memo.
func Paint(ctx workflow.Context) (int64, error) {
	err := workflow.UpsertTypedSearchAttributes(ctx, colour.ValueSet("green"), weight.ValueSet(12), heavy.ValueUnset())
	if err != nil {
		return 0, err
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{"coats": 2, "note": nil}); err != nil {
		return 0, err
	}
	found, _ := workflow.GetTypedSearchAttributes(ctx).GetInt64(weight)
	return found, nil
}

func attributesAndMemoAreUpserted(w *world) {
	defer w.serve(worker.Options{})()
	_, err := w.OperatorService().AddSearchAttributes(w, &operatorservice.AddSearchAttributesRequest{
		Namespace: client.DefaultNamespace,
		SearchAttributes: map[string]enums.IndexedValueType{
			colour.GetName(): colour.GetValueType(), weight.GetName(): weight.GetValueType(), heavy.GetName(): heavy.GetValueType(),
		},
	})
	w.that(err == nil || strings.Contains(err.Error(), "already"), "the attributes are registered", err)
	options := client.StartWorkflowOptions{
		TypedSearchAttributes: temporal.NewSearchAttributes(colour.ValueSet("red"), heavy.ValueSet(true)),
		Memo:                  map[string]any{"note": "wet", "coats": 1},
	}
	// A server may take a moment to know a name.
	var run client.WorkflowRun
	w.until(func() bool {
		run, err = w.tryStart(options, Paint)
		return err == nil
	})
	var found int64
	w.must(run.Get(w, &found))
	w.equal(found, int64(12), "what the workflow sees")
	described, err := w.DescribeWorkflow(w, run.GetID(), run.GetRunID())
	w.must(err)
	attributes := described.TypedSearchAttributes
	is, _ := attributes.GetKeyword(colour)
	w.equal(is, "green", "the colour")
	w.that(!attributes.ContainsKey(heavy), "an attribute that was removed")
	coats := 0
	w.must(converter.GetDefaultDataConverter().FromPayload(described.Memo.GetFields()["coats"], &coats))
	w.equal(coats, 2, "the memo")
	w.that(described.Memo.GetFields()["note"] == nil, "a key of the memo that was removed")
}
