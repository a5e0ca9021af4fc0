import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openApi } from '../../src/docs/openapi.ts'

/** Validates HTTP answers by the OpenAPI document, through a validator that is independent of how it was made. */

const document = JSON.parse(JSON.stringify(openApi()))
// Keywords of the document that JSON Schema does not know.
const ajv = new Ajv2020({ strict: false })
ajv.addSchema(document, 'openapi.json')

type Content = Readonly<Record<string, { readonly schema: unknown }>>
type Response = { readonly $ref?: string; readonly content?: Content }

const refusedResponse: Response = { $ref: '#/components/responses/Refused' }

const paths: readonly {
  readonly shape: RegExp
  readonly methods: Readonly<Record<string, { responses: Record<string, Response> }>>
}[] = Object.entries(document.paths).map(([path, methods]) => ({
  shape: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+').replaceAll('.', '\\.')}$`),
  methods: methods as never,
}))

const validators = new Map<string, ValidateFunction>()

function validatorFor(schema: unknown): ValidateFunction {
  const name = JSON.stringify(schema).replaceAll('"#/', '"openapi.json#/')
  const validate = validators.get(name) ?? ajv.compile(JSON.parse(name))
  validators.set(name, validate)
  return validate
}

/** An answer as received. */
export type Answer = {
  readonly method?: string | undefined
  readonly path: string
  readonly status: number
  readonly type: string | null
  readonly text: string
}

/** The error of an answer against the document; null where it fits. */
export function findAnswerError({ method = 'GET', path, status, type, text }: Answer): string | null {
  if (method === 'OPTIONS') return null
  const media = type?.split(';')[0] ?? ''
  const route = paths.find(({ shape }) => shape.test(path))
  const operation = route?.methods[method === 'HEAD' ? 'get' : method.toLowerCase()]
  // Unknown paths, and methods that a path lacks, get the common error answer.
  const documented = operation?.responses[status] ?? (status >= 400 ? refusedResponse : undefined)
  if (!documented) return `the document has no status ${status} for ${method} ${path}`
  const response: Response = documented.$ref ? document.components.responses[documented.$ref.split('/').at(-1) ?? ''] : documented
  if (text === '') return null
  const schema = response.content?.[media]?.schema
  if (!schema) return `the document has no ${media || 'body'} for ${method} ${path} with status ${status}`
  const validate = validatorFor(schema)
  const failed = parseBodies(media, text).find((body) => !validate(body))
  return failed === undefined ? null : `${ajv.errorsText(validate.errors)}: ${JSON.stringify(failed)}`
}

/** The JSON values in an answer: the body, or each line, or each event. */
function parseBodies(media: string, text: string): readonly unknown[] {
  if (media === 'application/x-ndjson')
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  if (media === 'text/event-stream') return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  return media.endsWith('json') ? [JSON.parse(text)] : [text]
}

/** Fails where an answer does not fit the document. */
export function assertDocumented(answer: Answer): void {
  const failed = findAnswerError(answer)
  if (failed !== null) throw new Error(failed)
}
