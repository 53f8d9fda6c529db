// What a case works with: a client, a queue of its own, and what it has started.
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import {
  Client,
  type ClientOptions,
  type WorkflowHandle,
  type WorkflowHandleWithStartDetails,
  type WorkflowStartOptions,
} from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { Worker, type NativeConnection, type WorkerOptions, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import * as activities from './activities';

export type Event = temporal.api.history.v1.IHistoryEvent;
type Options<T extends Workflow> = Omit<WorkflowStartOptions<T>, 'taskQueue' | 'workflowId'> & { workflowId?: string };

export interface Server {
  address: string;
  client: Client;
  connection: NativeConnection;
  bundle: WorkflowBundleWithSourceMap;
  /** Of a build with mistakes. */
  badBundle: WorkflowBundleWithSourceMap;
  /** With failures that have their words encoded. */
  encodedBundle: WorkflowBundleWithSourceMap;
}

/** What workers and replays have in common. */
type Code = Pick<WorkerOptions, 'workflowBundle' | 'dataConverter'>;

/** A claim that does not hold; it ends its case. */
class Unmet extends Error {}

export class World {
  client: Client;
  readonly namespace: string;
  private readonly runs: [workflowId: string, runId: string][] = [];
  private code: Code;

  constructor(
    readonly server: Server,
    readonly queue: string
  ) {
    this.client = server.client;
    this.namespace = server.client.options.namespace;
    this.code = { workflowBundle: server.bundle };
  }

  /** The same in another namespace. */
  within(namespace: string): World {
    return new World({ ...this.server, client: new Client({ connection: this.client.connection, namespace }) }, this.queue);
  }

  /** Gives the case a client of its own, and workers and replays with other code. */
  use(options: ClientOptions, code: Code = {}): void {
    this.client = new Client({ connection: this.client.connection, namespace: this.namespace, ...options });
    this.code = { ...this.code, ...code };
  }

  that(ok: boolean, what: string, ...details: unknown[]): asserts ok {
    if (!ok) throw new Unmet(`${what}: ${details.map((detail) => JSON.stringify(detail) ?? String(detail)).join(' ')}`);
  }

  equal<T>(actual: T, expected: T, what: string): void {
    this.that(isDeepStrictEqual(actual, expected), what, 'expected', expected, 'found', actual);
  }

  /** The error of this class that the promise ends with. */
  async fails<E extends Error>(promise: Promise<unknown>, kind: abstract new (...args: never[]) => E, what: string): Promise<E> {
    const outcome = await promise.then(
      () => undefined,
      (error: unknown) => error
    );
    this.that(outcome instanceof kind, what, String(outcome));
    return outcome;
  }

  id(): string {
    return `typescript-${randomUUID()}`;
  }

  /** Options of a start on the case's queue. */
  options<T extends Workflow>(options: Options<T>): WorkflowStartOptions<T> {
    return { workflowId: this.id(), ...options, taskQueue: this.queue } as WorkflowStartOptions<T>;
  }

  /** Starts a workflow on the case's queue and remembers it for its replay. */
  async start<T extends Workflow>(workflow: T, options: Options<T>): Promise<WorkflowHandleWithStartDetails<T>> {
    const handle = await this.client.workflow.start(workflow, this.options(options));
    this.remember(handle.workflowId, handle.firstExecutionRunId);
    return handle;
  }

  remember(workflowId: string, runId: string): void {
    this.runs.push([workflowId, runId]);
  }

  /** Runs a worker with everything registered beside the body, and stops it after that. */
  async serve<T>(body: () => Promise<T>, options: Partial<WorkerOptions> = {}): Promise<T> {
    const worker = await Worker.create({
      connection: this.server.connection,
      namespace: this.namespace,
      taskQueue: this.queue,
      activities,
      maxHeartbeatThrottleInterval: '100ms',
      shutdownGraceTime: '1s',
      ...this.code,
      ...options,
    });
    return await worker.runUntil(body);
  }

  /** Looks again and again until it is so; a case has a deadline. */
  async until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  handle<T extends Workflow>(workflowId: string, runId?: string): WorkflowHandle<T> {
    return this.client.workflow.getHandle<T>(workflowId, runId);
  }

  /** The history of a run, in order. */
  async events(workflowId: string, runId?: string): Promise<Event[]> {
    return (await this.handle(workflowId, runId).fetchHistory()).events ?? [];
  }

  /** Sends a run back to the workflow task that ended with this event; the run that goes on instead. */
  async reset(workflowId: string, runId: string, workflowTaskFinishEventId: Event['eventId']): Promise<string> {
    const answer = await this.client.workflowService.resetWorkflowExecution({
      namespace: this.namespace,
      workflowExecution: { workflowId, runId },
      workflowTaskFinishEventId,
      requestId: randomUUID(),
      reason: 'the case wants it',
    });
    this.remember(workflowId, answer.runId);
    return answer.runId;
  }

  /** Ends what is still open and replays each history that the case has made: its runs, what goes on from them, and their children. */
  async closeAndReplay(): Promise<void> {
    const histories = new Map<string, { workflowId: string; history: temporal.api.history.v1.IHistory }>();
    for (const [workflowId, runId] of this.runs) {
      if (histories.has(runId)) continue;
      // It fails where the workflow has ended by itself.
      await this.handle(workflowId).terminate('the case is over').catch(() => undefined);
      const history = await this.handle(workflowId, runId).fetchHistory();
      const events = history.events ?? [];
      histories.set(runId, { workflowId, history });
      const next = successor(events);
      if (next) this.remember(workflowId, next);
      for (const event of events) {
        const started = event.childWorkflowExecutionStartedEventAttributes?.workflowExecution;
        if (started) this.remember(started.workflowId!, started.runId!);
      }
    }
    const begun = [...histories.values()].filter(({ history }) => count(history.events!, 'workflowTaskCompletedEventAttributes') > 0);
    let replayed = 0;
    const replays = Worker.runReplayHistories(this.code, begun);
    for await (const { workflowId, error } of replays) {
      this.that(!error, `the replay of ${workflowId}`, error?.message);
      replayed += 1;
    }
    this.that(replayed === begun.length && replayed > 0, 'histories to replay', begun.length, replayed);
  }
}

/** The run that goes on from this one, however it has ended. */
export function successor(events: Event[]): string | null | undefined {
  const last = events.at(-1)!;
  const attributes =
    last.workflowExecutionContinuedAsNewEventAttributes ??
    last.workflowExecutionCompletedEventAttributes ??
    last.workflowExecutionFailedEventAttributes ??
    last.workflowExecutionTimedOutEventAttributes;
  return attributes?.newExecutionRunId;
}

/** How many events have attributes of this kind. */
export const count = (events: Event[], kind: keyof Event): number => events.filter((event) => event[kind]).length;

/** What the first event says. */
export const startOf = (events: Event[]): temporal.api.history.v1.IWorkflowExecutionStartedEventAttributes =>
  events[0].workflowExecutionStartedEventAttributes!;
