// Everything that a worker serves and a replayer knows.
export * from './activities';
export * from './attributes';
export * from './chains';
export * from './children';
export * from './markers';
export * from './register';
export * from './scopes';
export * from './tally';
