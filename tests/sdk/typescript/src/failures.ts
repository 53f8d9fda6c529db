// The converter of failures that have their words encoded, for clients, workers and a bundle of workflows.
import { DefaultFailureConverter } from '@temporalio/common';

export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
