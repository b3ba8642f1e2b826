// An identity provider on the loopback address. Whoever is asked to sign in is the person that the first form names, in the
// groups that it names. Prints its address as one line of JSON, and lives until stdin ends.
//   server.mjs REDIRECT_URI
import http from 'node:http';
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const redirect = process.argv[2];
const people = new Map();
const server = http.createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'proofhouse',
      client_secret: 'a secret: with signs & more',
      redirect_uris: [redirect],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_basic',
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'one' }] },
  cookies: { keys: ['for a test'] },
  pkce: { required: () => true },
  // The claims are in the ID token, as large providers do it.
  conformIdTokenClaims: false,
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
  scopes: ['openid', 'email', 'profile'],
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  async findAccount(_, id) {
    return { accountId: id, claims: async () => ({ sub: id, ...people.get(id) }) };
  },
});
provider.proxy = false;

const body = async (request) => {
  let text = '';
  for await (const piece of request) text += piece;
  return new URLSearchParams(text);
};

server.on('request', async (request, response) => {
  const [, kind, uid] = request.url.split('/');
  if (kind !== 'interaction') return provider.callback()(request, response);
  try {
    const details = await provider.interactionDetails(request, response);
    if (request.method === 'GET') {
      response.setHeader('content-type', 'text/html');
      return response.end(`<form method="post" action="/interaction/${uid}">${details.prompt.name}</form>`);
    }
    const form = await body(request);
    if (details.prompt.name === 'login') {
      const id = form.get('user');
      people.set(id, {
        name: id,
        email: `${id}@example.com`,
        email_verified: true,
        groups: (form.get('groups') ?? '').split(',').filter(Boolean),
      });
      return await provider.interactionFinished(request, response, { login: { accountId: id } });
    }
    const grant = new provider.Grant({ accountId: details.session.accountId, clientId: details.params.client_id });
    grant.addOIDCScope(details.params.scope);
    const grantId = await grant.save();
    return await provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true });
  } catch (error) {
    response.statusCode = 500;
    return response.end(String(error));
  }
});
console.log(JSON.stringify({ issuer }));
// The library writes warnings there, which nobody reads.
process.stdout.on('error', () => {});
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
