import { Ajv2020 } from 'ajv/dist/2020.js'

/**
 * The answers of a data feed as TradingView describes UDF (https://www.tradingview.com/charting-library-docs/latest/connecting_data/UDF/),
 * as JSON Schemas. They are written from that page, not from the schemas of the relay.
 */

const text = { type: 'string' }
const flag = { type: 'boolean' }
const number = { type: 'number' }
const seconds = { type: 'integer', minimum: 0, maximum: 99_999_999_999 }
const list = (items: object) => ({ type: 'array', items })
const oneOrMany = (items: object) => ({ anyOf: [items, list(items)] })
const resolution = { type: 'string', pattern: '^([1-9]\\d*|[1-9]\\d*[DWM]|[DWM])$' }

const object = (required: Readonly<Record<string, object>>, optional: Readonly<Record<string, object>> = {}) => ({
  type: 'object',
  required: Object.keys(required),
  properties: { ...required, ...optional },
})

const udfSchemas = {
  config: object(
    { supports_search: flag, supports_group_request: flag, supports_marks: flag, supports_timescale_marks: flag },
    {
      supports_time: flag,
      exchanges: list(object({ value: text, name: text, desc: text })),
      symbols_types: list(object({ name: text, value: text })),
      supported_resolutions: list(resolution),
    },
  ),
  symbols: object(
    {
      ...{ name: text, ticker: text, description: text, type: text, exchange: text, listed_exchange: text },
      session: { type: 'string', pattern: '^(24x7|\\d{4}-\\d{4}.*)$' },
      timezone: { type: 'string', pattern: '^(Etc/UTC|[A-Z][a-z]+/[A-Za-z_]+)$' },
      ...{ minmov: { type: 'integer', minimum: 1 }, pricescale: { type: 'integer', minimum: 1 } },
      ...{ has_intraday: flag, supported_resolutions: list(resolution) },
      visible_plots_set: { enum: ['ohlcv', 'ohlc', 'c'] },
    },
    {
      ...{ minmov2: number, pointvalue: number, has_daily: flag, has_weekly_and_monthly: flag },
      intraday_multipliers: list({ type: 'string', pattern: '^[1-9]\\d*$' }),
      ...{ volume_precision: { type: 'integer', minimum: 0 }, format: { enum: ['price', 'volume'] } },
      data_status: { enum: ['streaming', 'endofday', 'delayed_streaming'] },
    },
  ),
  search: list(object({ symbol: text, description: text, exchange: text, type: text }, { full_name: text, ticker: text })),
  history: {
    oneOf: [
      { ...object({ s: { const: 'ok' }, t: list(seconds), c: list(number) }, ohlv()), minProperties: 3 },
      { ...object({ s: { const: 'no_data' } }, { nextTime: seconds }), additionalProperties: false },
      object({ s: { const: 'error' }, errmsg: text }),
    ],
  },
  marks: object({
    id: list({ type: ['string', 'integer'] }),
    time: list(seconds),
    color: oneOrMany(text),
    text: oneOrMany(text),
    label: oneOrMany({ type: 'string', maxLength: 2 }),
    labelFontColor: oneOrMany(text),
    minSize: oneOrMany(number),
  }),
  timescale_marks: list(
    object({ id: { type: ['string', 'integer'] }, time: seconds, color: text, label: text, tooltip: oneOrMany(text) }),
  ),
  error: object({ s: { const: 'error' }, errmsg: { type: 'string', minLength: 1 } }),
}

function ohlv() {
  return { o: list(number), h: list(number), l: list(number), v: list(number) }
}

const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true })
const validators = new Map(Object.entries(udfSchemas).map(([name, schema]) => [name, ajv.compile(schema)]))

/** The error of an answer against the description of UDF; null if it fits. */
export function findUdfError(name: keyof typeof udfSchemas, answer: unknown): string | null {
  const validate = validators.get(name)
  return validate?.(answer) ? null : ajv.errorsText(validate?.errors)
}
