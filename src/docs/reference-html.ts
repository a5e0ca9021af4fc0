import { html } from 'hono/html'
import type { asyncApi } from './asyncapi.ts'
import { isMessageType, type JsonSchema } from './json-schemas.ts'
import { type openApi, parametersOf } from './openapi.ts'
import { anyRefusal, type DescribedRoute, describedRoutes, refusals } from './route-texts.ts'

/** HTML whose texts are escaped, also in examples. */
export type Markup = ReturnType<typeof html>
type OpenApi = ReturnType<typeof openApi>
type AsyncApi = ReturnType<typeof asyncApi>

export const anchorOf = (id: string): string => id.replaceAll(/[^\w-]+/g, '-')

export const operations = (): Markup =>
  html`${[...Map.groupBy(describedRoutes, ({ tag }) => tag)].map(
    ([tag, tagged]) => html`<h2 id="${anchorOf(tag)}">${tag}</h2>
${tagged.map(operationSection)}`,
  )}`

function operationSection(route: DescribedRoute): Markup {
  const { id, method, path, summary, description, curl, responses, refusals } = route
  const parameters = parametersOf(route)
  return html`<section id="${id}">
<h3><span class="verb">${method.toUpperCase()}</span><code>${path}</code></h3>
<p>${summary}.${description ? ` ${description}` : ''}</p>
${copyBlock(id, curl)}
${parameters.length > 0 ? parametersTable(parameters) : ''}
<div class="scroll"><table><tr><th>status</th><th>type</th><th></th></tr>
${responses.map(answerRow)}
<tr><td>${[...refusals, 'others'].join(' ')}</td><td>${linkTo('ErrorRecord')}</td><td><a href="#refused">Refused.</a></td></tr></table></div>
</section>`
}

/** Shows code to copy. Tests find it by its name. */
export const copyBlock = (name: string, source: string): Markup =>
  html`<div class="line"><pre data-line="${name}">${source}</pre></div>`

const parametersTable = (parameters: ReturnType<typeof parametersOf>): Markup =>
  html`<div class="scroll"><table><tr><th>parameter</th><th>type</th><th></th></tr>
${parameters.map(
  ({ name, schema, description }) =>
    html`<tr><td><code>${name}</code></td><td>${typeOf(schema)}</td><td>${description ?? ''}</td></tr>`,
)}</table></div>`

function answerRow({ status, description, content = {} }: DescribedRoute['responses'][number]): Markup {
  const mediaTypes = Object.entries(content).map(([type, { schema }]) => {
    const { $ref } = schema as JsonSchema
    return html`<code>${type}</code> ${$ref ? linkTo(lastSegment($ref)) : ''}<br>`
  })
  return html`<tr><td>${status}</td><td>${mediaTypes}</td><td>${description}</td></tr>`
}

export const refusalRows = (): Markup =>
  html`<div class="scroll"><table>${[...Object.entries(refusals), ['others', anyRefusal]].map(
    ([status, description]) => html`<tr><td>${status}</td><td>${description}</td></tr>`,
  )}</table></div>`

export function channels({ channels, operations }: AsyncApi): Markup {
  const byAddress = Object.entries(channels).map(([name, channel]) => {
    const channelOperations = Object.values(operations).filter(({ channel: { $ref } }) => $ref === `#/channels/${name}`)
    return html`<h3 id="channel-${name}"><code>${channel.address}</code> ${channel.title}</h3>
<p>${channel.description}</p>
<div class="scroll"><table><tr><th>sender</th><th>messages</th><th></th></tr>${channelOperations.map(
      ({ action, summary, messages }) =>
        html`<tr><td>${action === 'send' ? 'the relay' : 'a client'}</td><td>${linksTo(messages)}</td><td>${summary}</td></tr>`,
    )}</table></div>`
  })
  return html`${byAddress}`
}

const linksTo = (messages: readonly { readonly $ref: string }[]): readonly Markup[] =>
  messages.map(({ $ref }) => {
    const name = lastSegment($ref)
    return html`<a href="#message-${name}"><code>${name}</code></a> `
  })

export function messages({ components }: AsyncApi, types: readonly string[]): Markup {
  return html`${types.map((type) => {
    const message = components.messages[type]
    const schema = components.schemas[type]
    if (!message || !schema) return ''
    return html`<section id="message-${type}">
<h3><code>${type}</code></h3>
<p>${message.summary} ${isMessageType(type) ? html`<a class="soft" href="/schemas/${type}.json">schema</a>` : ''}</p>
${fieldsTable(schema)}
${message.examples.map(
  ({ payload }) =>
    html`<details><summary>example</summary>${copyBlock(`example-${type}`, JSON.stringify(payload, null, 2))}</details>`,
)}</section>`
  })}`
}

export function parts({ components }: OpenApi, names: readonly string[]): Markup {
  return html`${names.map((name) => {
    const schema = components.schemas[name]
    if (!schema) return ''
    return html`<section id="part-${name}"><h3>${name}</h3><p>${schema.description}</p>
${schema.properties ? fieldsTable(schema) : html`<p class="soft">${typeOf(schema)} <code>${schema.pattern ?? ''}</code></p>`}</section>`
  })}`
}

function fieldsTable({ properties = {}, required = [] }: JsonSchema): Markup {
  return html`<div class="scroll"><table><tr><th>field</th><th>type</th><th></th></tr>
${Object.entries(properties).map(
  ([name, schema]) =>
    html`<tr><td><code>${name}${required.includes(name) ? '' : '?'}</code></td><td>${typeOf(schema)}</td><td>${schema.description ?? ''}</td></tr>`,
)}</table></div>`
}

function typeOf(schema: JsonSchema): Markup {
  const [first, ...more] = schema.allOf ?? []
  if (first && more.length === 0) return typeOf(first)
  if (schema.$ref) return linkTo(lastSegment(schema.$ref))
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`
  if (schema.enum) return html`${schema.enum.map((one, at) => html`${at > 0 ? ' ' : ''}<code>${String(one)}</code>`)}`
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives && alternatives.length > ALTERNATIVES_BOUND) return html`one of ${alternatives.length} forms`
  if (alternatives) return html`${alternatives.map((one, at) => html`${at > 0 ? ' or ' : ''}${typeOf(one)}`)}`
  if (schema.items) return html`list of ${typeOf(schema.items)}`
  if (schema.properties) return html`{ ${Object.keys(schema.properties).join(', ')} }`
  return html`${[schema.type ?? 'anything'].flat().join(' or ')}`
}

/** Limit of the alternatives that are named. If there are more, only their number is shown. */
const ALTERNATIVES_BOUND = 4

const linkTo = (name: string): Markup =>
  /^[A-Z]/.test(name) ? html`<a href="#part-${name}">${name}</a>` : html`<a href="#message-${name}"><code>${name}</code></a>`

const lastSegment = (ref: string): string => ref.split('/').at(-1) ?? ''
