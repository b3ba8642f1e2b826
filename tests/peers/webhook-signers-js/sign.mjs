// Signs a body with the SDKs of platforms that have one for Node only, as the platforms themselves do, and prints what they
// would send.
import { sign, verify } from '@octokit/webhooks-methods'
import '@shopify/shopify-api/adapters/node'
import { ApiVersion, shopifyApi } from '@shopify/shopify-api'
import { HashFormat, createSHA256HMAC } from '@shopify/shopify-api/runtime'

const SECRET = 's3cret-s3cret-s3cret'
const body = process.argv[2]

const headers = {
  'content-type': 'application/json',
  'x-shopify-hmac-sha256': await createSHA256HMAC(SECRET, body, HashFormat.Base64),
  'x-shopify-topic': 'orders/create',
  'x-shopify-shop-domain': 'demo.myshopify.com',
  'x-shopify-api-version': '2026-07',
  'x-shopify-webhook-id': 'b54557e4-bdd9-4b37-8a5f-bf7d70bcd043',
}

// What we accept, the SDK accepts.
const shopify = shopifyApi({
  apiKey: 'key',
  apiSecretKey: SECRET,
  scopes: [],
  hostName: 'hooks.example.com',
  apiVersion: Object.values(ApiVersion)[0],
  isEmbeddedApp: false,
  logger: { log: () => {} },
})
const rawRequest = { method: 'POST', url: '/', headers }
const checked = await shopify.webhooks.validate({ rawBody: body, rawRequest, rawResponse: {} })
if (!checked.valid) throw new Error(JSON.stringify(checked))

const signature = await sign(SECRET, body)
if (!(await verify(SECRET, body, signature))) throw new Error(signature)
const github = {
  'content-type': 'application/json',
  'x-github-event': 'push',
  'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  'x-hub-signature-256': signature,
}

const sent = [
  { scheme: 'shopify', secret: SECRET, headers, body, query: null },
  { scheme: 'github', secret: SECRET, headers: github, body, query: null },
]
console.log(JSON.stringify({ sent }))
