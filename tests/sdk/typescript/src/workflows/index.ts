// Everything that a worker serves and a replayer knows.
export * from './activities';
export { default } from './anything';
export * from './attributes';
export * from './chains';
export * from './changing';
export * from './children';
export * from './echoed';
export * from './headers';
export * from './limits';
export * from './markers';
export * from './outside';
export * from './pending';
export * from './planned';
export * from './register';
export * from './scopes';
export * from './tally';
