// An issuer of tokens, made by oauth2-mock-server: prints the URL of its keys, and signs with the keys of its algorithms by turns, RS256
// and ES256 unless they are named: issuer.mjs [ALGORITHM]...
// The body of POST /token may have `claims`, a JSON object that is added to the token's.
// A browser that comes to be logged in is whoever its cookie `claims` says: its tokens have these.
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
const algorithms = process.argv.slice(2);
for (const algorithm of algorithms.length ? algorithms : ["RS256", "ES256"]) {
  await server.issuer.keys.generate(algorithm);
}
const claimsOfCodes = new Map();
server.service.on("beforeAuthorizeRedirect", ({ url }, request) => {
  const cookie = /(?:^|; )claims=([^;]*)/.exec(request.headers.cookie ?? "");
  claimsOfCodes.set(url.searchParams.get("code"), decodeURIComponent(cookie?.[1] ?? "{}"));
});
server.service.on("beforeTokenSigning", (token, request) => {
  const claims = request.body.claims ?? claimsOfCodes.get(request.body.code) ?? "{}";
  Object.assign(token.payload, JSON.parse(claims));
});
await server.start(0, "127.0.0.1");
console.log(JSON.stringify({ port: server.address().port, issuer: server.issuer.url }));
// It ends with the test that started it.
process.stdin.resume().on("end", () => process.exit(0));
