import { type JsonSchema, messageTypes, namedSchemas } from './schemas.ts'

const REF_PREFIX = '#/'
/** The fields of the Read API's record. The relay passes records on as they are, so none of them is certain. */
const recordFields = {
  contract_address: 'string',
  symbol: 'string',
  name: 'string',
  decimals: 'number',
  icon_url: 'string',
  total_supply: 'number',
  isin: 'string',
  multiplier: 'number',
  paused_features: 'readonly number[]',
  nav_price: 'number',
  nav_price_updated_at: 'string',
} as const

/** The messages as TypeScript types, from the schemas that check them. */
export function typescriptTypes(): string {
  const schemas = namedSchemas(REF_PREFIX)
  const declare = (name: string, type: string, description: unknown) =>
    `${commentOf({ description })}export type ${name} = ${type}\n`
  const declareUnion = (name: string, types: readonly string[], description: string) =>
    declare(name, types.map(typeNameOf).join(' | '), description)
  const { updates, notices, requests } = messageTypes
  return indent(
    [
      '// The messages of stocktape.v1, made from the schemas of the relay that serves this file.\n',
      ...Object.entries(schemas).map(([name, schema]) =>
        declare(typeNameOf(name), name === 'TokenRecord' ? recordType : typeOf(schema), schema.description),
      ),
      declareUnion('Update', updates, 'A message of the tape.'),
      declareUnion('Notice', notices, 'A message of a connection.'),
      declare(
        'Message',
        'Update | Notice',
        'Anything that a listener can receive. Newer relays may send more types: ignore those.',
      ),
      declareUnion('Request', requests, 'What a client may send on a WebSocket.'),
    ].join('\n'),
  )
}

/** Indents the lines inside of braces. */
function indent(text: string): string {
  let depth = 0
  const lines = text.split('\n').map((line) => {
    // Comments hold no structure, and two brackets that open together indent once.
    const code = line
      .trim()
      .replace(/^\/\*\*.*|^\/\/.*/, '')
      .replaceAll('({', '{')
      .replaceAll('})', '}')
    const count = (brackets: RegExp) => code.match(brackets)?.length ?? 0
    const isEnd = /^[})]/.test(code)
    const indented = '  '.repeat(isEnd ? depth - 1 : depth) + line.trim()
    depth += count(/[{(]/g) - count(/[})]/g)
    return indented.trimEnd()
  })
  return lines.join('\n')
}

/** The messages of the connection and the client have small names; types begin with a capital letter. */
const typeNameOf = (name: string): string =>
  messageTypes.notices.some((type) => type === name) || messageTypes.updates.some((type) => type === name)
    ? `${capitalized(name)}Message`
    : messageTypes.requests.some((type) => type === name)
      ? `${capitalized(name)}Request`
      : name

const capitalized = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

const commentOf = ({ description }: { readonly description?: unknown }): string =>
  typeof description === 'string' ? `/** ${description.replaceAll('*/', '* /')} */\n` : ''

const recordType = `{
${Object.entries(recordFields)
  .map(([name, type]) => `  readonly ${name}?: ${type}\n`)
  .join('')}  readonly [field: string]: unknown
}`

function typeOf(schema: JsonSchema): string {
  const { $ref, anyOf, oneOf, allOf, type, enum: values, const: value } = schema
  if (typeof $ref === 'string') return typeNameOf($ref.slice(REF_PREFIX.length))
  const options = anyOf ?? oneOf
  if (options) return unionOf(options.map(typeOf))
  if (allOf) return allOf.map(typeOf).join(' & ')
  if (value !== undefined) return JSON.stringify(value)
  if (values) return unionOf(values.map((one: unknown) => JSON.stringify(one)))
  if (Array.isArray(type)) return unionOf(type.map((one) => typeOf({ ...schema, type: one })))
  switch (type) {
    case 'object':
      return objectType(schema)
    case 'array':
      return `readonly (${schema.items ? typeOf(schema.items as JsonSchema) : 'unknown'})[]`
    case 'integer':
    case 'number':
      return 'number'
    case 'string':
    case 'boolean':
    case 'null':
      return type
    default:
      return 'unknown'
  }
}

const unionOf = (types: readonly string[]): string => [...new Set(types)].join(' | ')

function objectType(schema: JsonSchema): string {
  const { properties = {}, required = [], additionalProperties } = schema
  const names = Object.keys(properties)
  if (names.length === 0) return `{ readonly [name: string]: ${additionalProperties === false ? 'never' : 'unknown'} }`
  const field = (name: string, isRequired = required.includes(name)) => {
    const fieldSchema = properties[name] as JsonSchema
    return `${commentOf(fieldSchema)}readonly ${/^\w+$/.test(name) ? name : JSON.stringify(name)}${isRequired ? '' : '?'}: ${typeOf(fieldSchema)}\n`
  }
  const { source } = properties as Record<string, JsonSchema>
  const sources: readonly unknown[] = source?.enum ?? []
  const ofLogs = names.filter((name) => !required.includes(name))
  // A change that a log brought has the place of that log; any other has none.
  if (!names.includes('key') || required.includes('key') || !sources.includes('log'))
    return `{\n${names.map((name) => field(name)).join('')}${additionalProperties ? 'readonly [name: string]: unknown\n' : ''}}`
  const common = names.filter((name) => name !== 'source' && !ofLogs.includes(name))
  const others = unionOf(sources.filter((one) => one !== 'log').map((one) => JSON.stringify(one)))
  return `{
${common.map((name) => field(name)).join('')}} & ({
readonly source: "log"
${ofLogs.map((name) => field(name, true)).join('')}} | {
readonly source: ${others}
${ofLogs.map((name) => `readonly ${name}?: never\n`).join('')}})`
}
