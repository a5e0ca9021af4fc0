import type { z } from 'zod'
import { version } from '../lib/version.ts'
import { examplesOf } from '../protocol/contract-examples.ts'
import { ErrorRecord } from '../protocol/refusal.ts'
import { type JsonSchema, messageTypes, namedSchemas, querySchema } from './json-schemas.ts'
import { anyRefusal, type DescribedRoute, describedRoutes, jsonContent, refusals, SCHEMA_REF_PREFIX } from './route-texts.ts'
import { CAVEAT, serviceDescription } from './snippets.ts'

/** The HTTP side of the contract as OpenAPI 3.1. */
export function openApi() {
  const { updates, notices } = messageTypes
  const schemas: Readonly<Record<string, JsonSchema>> = {
    ...Object.fromEntries(
      Object.entries(namedSchemas(SCHEMA_REF_PREFIX)).map(([id, schema]) => {
        const examples = examplesOf(id)
        return [id, { ...schema, ...(examples.length > 0 && { examples }) }]
      }),
    ),
    update: oneOf('A message of the tape.', updates),
    message: oneOf('Any message that a listener can receive.', [...updates, ...notices]),
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'stocktape',
      version,
      summary: 'A resumable feed of tokenized stocks.',
      description: `${serviceDescription} ${CAVEAT}`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The relay that serves this document.' }],
    // The empty entry stands for relays that require no API key.
    security: [{}, { bearer: [] }, { key: [] }],
    tags: [...new Set(describedRoutes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths: Object.fromEntries(describedRoutes.map((route) => [route.path, { [route.method]: operationOf(route) }])),
    components: {
      schemas,
      responses: Object.fromEntries(
        [...Object.entries(refusals), ['', anyRefusal] as const].map(([status, description]) => [
          `Refused${status}`,
          { description, content: { ...jsonContent(ErrorRecord), 'text/plain': { schema: { type: 'string' } } } },
        ]),
      ),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A key, if this relay requires one.' },
        key: { type: 'apiKey', in: 'query', name: 'key', description: 'The key, for clients that cannot send a header.' },
      },
    },
  }
}

const oneOf = (description: string, types: readonly string[]) => ({
  description,
  oneOf: types.map((type) => ({ $ref: SCHEMA_REF_PREFIX + type })),
  discriminator: { propertyName: 'type', mapping: Object.fromEntries(types.map((type) => [type, SCHEMA_REF_PREFIX + type])) },
})

/** JSON omits the properties that are undefined. */
function operationOf(route: DescribedRoute) {
  const { id, tag, summary, description, body, responses, refusals, curl } = route
  const parameters = parametersOf(route)
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: body && { required: true, content: body },
    responses: Object.fromEntries<OpenApiResponse>([
      ...responses.map((answer) => [answer.status, responseOf(answer)] as const),
      ...[...refusals, ''].map((status) => [status || 'default', { $ref: `#/components/responses/Refused${status}` }] as const),
    ]),
    'x-codeSamples': [{ lang: 'Shell', source: curl }],
  }
}

type OpenApiResponse = ReturnType<typeof responseOf> | { readonly $ref: string }

const responseOf = ({ description, content, headers }: DescribedRoute['responses'][number]) => ({
  description,
  content,
  headers:
    headers && Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, { description: text, schema: aText }])),
})

const aText: JsonSchema = { type: 'string' }

export const parametersOf = ({ pathParameters = {}, query, requestHeaders = {} }: DescribedRoute) => [
  ...Object.entries(pathParameters).map(([name, { description, example }]) => ({
    ...{ name, in: 'path', required: true, description, schema: aText, example },
  })),
  ...(query ? queryParametersOf(query) : []),
  ...Object.entries(requestHeaders).map(([name, description]) => ({ name, in: 'header', description, schema: aText })),
]

function queryParametersOf(query: z.ZodObject) {
  const { properties = {} } = querySchema(query)
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    ...{ name, in: 'query', description },
    ...(listParameters[name] ? { schema: listParameters[name], style: 'form', explode: false } : { schema: withoutNull(schema) }),
  }))
}

/** Parameters whose value is a list with commas. In a `subscribe` each is an array, whose schema describes the items. */
const listParameters: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  Object.entries(namedSchemas(SCHEMA_REF_PREFIX).subscribe?.properties ?? {}).flatMap(([name, schema]) => {
    const { description: _description, ...list } = withoutNull(schema)
    return list.type === 'array' ? [[name, list]] : []
  }),
)

/** Removes null from a schema, because a query string can omit a parameter, but cannot set it to null. */
function withoutNull(schema: JsonSchema): JsonSchema {
  if (Array.isArray(schema.type)) {
    const [type] = schema.type.filter((candidate: unknown) => candidate !== 'null')
    return { ...schema, type }
  }
  const { anyOf, ...rest } = schema
  const [onlyForm, ...otherForms] = anyOf?.filter((one) => one.type !== 'null') ?? []
  return onlyForm && otherForms.length === 0 ? { ...rest, ...onlyForm } : schema
}
