import { readFileSync } from 'node:fs';

/** How a client connects: over TLS by an authority, and with an API key, where the environment says so. */
export function secured(address: string): { address: string; tls?: { serverRootCACertificate: Buffer }; apiKey?: string } {
  const { EVERLOG_TEST_CA_FILE: ca, EVERLOG_TEST_API_KEY: apiKey } = process.env;
  return { address, ...(ca && { tls: { serverRootCACertificate: readFileSync(ca) } }), ...(apiKey && { apiKey }) };
}
