// An issuer of tokens, made by oauth2-mock-server: prints the URL of its keys, and signs with RS256 and ES256 by turns.
// The body of POST /token may have `claims`, a JSON object that is added to the token's.
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
await server.issuer.keys.generate("RS256");
await server.issuer.keys.generate("ES256");
server.service.on("beforeTokenSigning", (token, request) => {
  Object.assign(token.payload, JSON.parse(request.body.claims ?? "{}"));
});
await server.start(0, "127.0.0.1");
console.log(JSON.stringify({ port: server.address().port, issuer: server.issuer.url }));
// It ends with the test that started it.
process.stdin.resume().on("end", () => process.exit(0));
