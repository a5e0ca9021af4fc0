import { quoteFields, sessionFields } from '../protocol/fields.ts'
import { typesOfKind, type UpdateType } from '../protocol/updates.ts'
import { isMessageType, type JsonSchema, messageTypes, namedSchemas } from './json-schemas.ts'

const REF_PREFIX = '#/'
const factTypes = typesOfKind('movement', 'trade', 'event', 'change')
const onChainFields = ['key', 'stage', 'late', 'block', 'tx']
/** The fields of the Read API's record. The relay does not check records, so each field is optional. */
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

type Fields = ReadonlyMap<string, string>

/** Fields that several messages share, and that are printed once, with the texts of one message that has all of them. */
type SharedPart = { readonly name: string; readonly description: string; readonly fields: Fields }

const movements = typesOfKind('movement')
const TYPE_PARAMETER = 'Type'

export function typescriptTypes(): string {
  const schemas = namedSchemas(REF_PREFIX)
  const partOf = (name: string, description: string, like: UpdateType, fields: readonly string[]): SharedPart => {
    const all = fieldsOf(schemas[like] ?? {})
    return { name, description, fields: new Map(fields.map((field) => [field, all.get(field) ?? ''])) }
  }
  const common = ['type', 'id', 'prev', 'symbol', 'address', 'time']
  const parts = [
    partOf('TokenUpdate<Type>', 'The fields of every message about one token.', 'transfer', common),
    partOf('GlobalUpdate<Type>', 'The fields of every message that concerns all tokens.', 'status', common),
    partOf('OnChain', 'A fact on the chain: its name, how certain it is, and its place.', 'transfer', onChainFields),
    partOf('QuoteReading', 'The price of a token in a pool.', 'quote', Object.keys(quoteFields)),
    partOf('MarketHours', 'The state of the market of the underlying stocks.', 'session', Object.keys(sessionFields)),
  ]
  const declare = (name: string, type: string, description: unknown) =>
    `${commentOf({ description })}export type ${name} = ${type}\n`
  const declareUnion = (name: string, types: readonly string[], description: string) =>
    declare(name, types.map(typeNameOf).join(' | '), description)
  const declareSchema = ([name, schema]: readonly [string, JsonSchema]): string => {
    if (name === 'TokenRecord') return declare(name, recordType, schema.description)
    const isMovement = movements.some((type) => type === name)
    return declare(typeNameOf(name), isMovement ? `Movement<"${name}">` : typeOf(schema, parts), schema.description)
  }
  const movement = fieldsOf(schemas[movements[0] ?? ''] ?? {})
  const { updates, notices, requests } = messageTypes
  return [
    '// The messages of stocktape.v1, made from the schemas of the relay that serves this file.\n',
    ...Object.entries(schemas)
      .filter(([name]) => !isMessageType(name))
      .map(declareSchema),
    ...parts.map(({ name, description, fields }) =>
      declare(name.replace('<Type>', '<Type extends string>'), literalOf(withType(fields, TYPE_PARAMETER)), description),
    ),
    declare('FromLog<Other extends string>', fromLogType, 'A change that a log tells, or another source.'),
    declare(
      'Movement<Type extends string>',
      composed(withType(movement, TYPE_PARAMETER), parts),
      'Tokens moved, were issued or destroyed.',
    ),
    declare(
      'Amended<Fact>',
      "Fact extends unknown ? Omit<Fact, 'id' | 'prev' | 'time'> : never",
      'A message as an amend contains it: without the fields that the tape adds.',
    ),
    ...Object.entries(schemas)
      .filter(([name]) => isMessageType(name))
      .map(declareSchema),
    declareUnion('FactMessage', factTypes, 'A message about one fact on the chain, which a retract or an amend can follow.'),
    declareUnion('Update', updates, 'A message of the tape.'),
    declareUnion('Notice', notices, 'A message of a connection.'),
    declare('Message', 'Update | Notice', 'Anything that a listener can receive. Newer relays may send more types: ignore those.'),
    declareUnion('Request', requests, 'A message from a client on a WebSocket.'),
  ].join('\n')
}

const typeNameOf = (name: string): string => {
  if (!isMessageType(name)) return name
  const isRequest = messageTypes.requests.some((type) => type === name)
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}${isRequest ? 'Request' : 'Message'}`
}

const commentOf = ({ description }: { readonly description?: unknown }): string =>
  typeof description === 'string' ? `/** ${description.replaceAll('*/', '* /')} */\n` : ''

const recordType = `{
${Object.entries(recordFields)
  .map(([name, type]) => `  readonly ${name}?: ${type}\n`)
  .join('')}  readonly [field: string]: unknown
}`

/** Prints a schema as a type. An object refers to the parts for the fields that they contain. */
function typeOf(schema: JsonSchema, parts: readonly SharedPart[] = []): string {
  const { $ref, anyOf, oneOf, allOf, type, enum: values, const: value } = schema
  if (typeof $ref === 'string') return typeNameOf($ref.slice(REF_PREFIX.length))
  const options = anyOf ?? oneOf
  if (options && isAnyFact(options)) return 'Amended<FactMessage>'
  if (options) return unionOf(options.map((option) => typeOf(option, parts)))
  if (allOf) return allOf.map((one) => typeOf(one, parts)).join(' & ')
  if (value !== undefined) return JSON.stringify(value)
  if (values) return unionOf(values.map((one: unknown) => JSON.stringify(one)))
  if (Array.isArray(type)) return unionOf(type.map((one) => typeOf({ ...schema, type: one }, parts)))
  switch (type) {
    case 'object':
      return objectType(schema, parts)
    case 'array':
      return arrayOf(schema.items ? typeOf(schema.items, parts) : 'unknown')
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

/** Whether a union lists the messages of all facts. */
const isAnyFact = (options: readonly JsonSchema[]): boolean =>
  options.map(({ properties }) => properties?.type?.const).join() === factTypes.join()

const arrayOf = (type: string): string => `readonly ${/^\w+$/.test(type) ? type : `(${type})`}[]`

const unionOf = (types: readonly string[]): string => [...new Set(types)].join(' | ').replace(everyUpdate, 'Update')
const everyUpdate = messageTypes.updates.map(typeNameOf).join(' | ')

function objectType(schema: JsonSchema, parts: readonly SharedPart[]): string {
  const { properties = {}, required = [], additionalProperties } = schema
  if (Object.keys(properties).length === 0)
    return `{ readonly [name: string]: ${additionalProperties === false ? 'never' : 'unknown'} }`
  const fields = fieldsOf(schema, parts)
  const others = isOfLog(properties, required) && properties.source?.enum?.filter((one) => one !== 'log')
  if (!others) return composed(fields, parts, additionalProperties ? 'readonly [name: string]: unknown\n' : '')
  const own = new Map([...fields].filter(([name]) => name !== 'source' && !onChainFields.includes(name)))
  return `${composed(own, parts)} & FromLog<${unionOf(others.map((one) => JSON.stringify(one)))}>`
}

/** Whether the source of a change may be a log. Only then it has the fields of the log's place. */
const isOfLog = (properties: NonNullable<JsonSchema['properties']>, required: readonly string[]): boolean =>
  'key' in properties && !required.includes('key') && properties.source?.enum?.includes('log') === true

const fromLogType = `{ readonly source: "log" } & OnChain | { readonly source: Other } & { readonly [Field in keyof OnChain]?: never }`

/** Prints each field of an object as a line of a type, with its comment. */
function fieldsOf({ properties = {}, required = [] }: JsonSchema, parts: readonly SharedPart[] = []): Fields {
  const nameOf = (name: string) => `${/^\w+$/.test(name) ? name : JSON.stringify(name)}${required.includes(name) ? '' : '?'}`
  const textOf = (name: string, schema: JsonSchema) => `${commentOf(schema)}readonly ${nameOf(name)}: ${typeOf(schema, parts)}\n`
  return new Map(Object.entries(properties).map(([name, schema]) => [name, textOf(name, schema)]))
}

/** Prints a type with these fields: it names each part whose fields are all among them, and lists the other fields. */
function composed(fields: Fields, parts: readonly SharedPart[], more = ''): string {
  const type = /: (.+)\n$/.exec(fields.get('type') ?? '')?.[1] ?? ''
  // The field `type` is the parameter of a part, so its text differs.
  const isField = ([name, text]: readonly [string, string]) => (name === 'type' ? fields.has(name) : fields.get(name) === text)
  const found = parts.filter((part) => [...part.fields].every(isField))
  const rest = new Map([...fields].filter(([name]) => !found.some((part) => part.fields.has(name))))
  const names = found.map(({ name }) => name.replace(TYPE_PARAMETER, type))
  return [...names, ...(rest.size > 0 || more !== '' ? [literalOf(rest, more)] : [])].join(' & ')
}

const withType = (fields: Fields, type: string): Fields =>
  fields.has('type') ? new Map(fields).set('type', `readonly type: ${type}\n`) : fields

/** Prints an object type. Its fields may contain object types, which are indented already. */
const literalOf = (fields: Fields, more = ''): string => `{\n${[...fields.values(), more].join('').replaceAll(/^(?=.)/gm, '  ')}}`
