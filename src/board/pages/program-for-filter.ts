import { type BoardFilter, filterParameters } from '../shared/board-route.ts'

export const programKinds = ['curl', 'wscat', 'TypeScript', 'Python'] as const
/** The variable that `stocktape tail` reads too. */
const KEY_VARIABLE = 'STOCKTAPE_KEY'
export type ProgramKind = (typeof programKinds)[number]

/** Makes a program that receives exactly the messages that the filter selects. An API key is read from the environment. */
export function programFor(kind: ProgramKind, filter: BoardFilter, base: URL, needsKey = false): string {
  const query = filterParameters({ ...filter, symbols: filter.symbols.length > 0 ? filter.symbols : ['*'] }).join('&')
  const stream = new URL(`v1/stream?${query}`, base).href
  const header = needsKey ? `-H "Authorization: Bearer $${KEY_VARIABLE}" ` : ''
  switch (kind) {
    case 'curl':
      return `curl -N ${header}${quoted(`${stream}&format=ndjson`)}`
    case 'wscat':
      return `npx wscat ${header}-c ${quoted(new URL(`v1/ws?${query}`, base).href.replace(/^http/, 'ws'))}`
    case 'TypeScript':
      return typescriptFor(filter, base, needsKey)
    case 'Python':
      return `import json, ${needsKey ? 'os, ' : ''}urllib.request

url = ${JSON.stringify(`${stream}&format=ndjson`)}
${needsKey ? `request = urllib.request.Request(url, headers={"Authorization": "Bearer " + os.environ["${KEY_VARIABLE}"]})\n` : ''}for line in urllib.request.urlopen(${needsKey ? 'request' : 'url'}):
    print(json.loads(line))`
  }
}

function typescriptFor({ symbols, types, minValue, account }: BoardFilter, base: URL, needsKey: boolean): string {
  const options = {
    ...(types.length > 0 && { types }),
    ...(minValue !== '' && { minValue }),
    ...(account.length > 0 && { account }),
  }
  const given = Object.keys(options).length === 0 ? '' : `, ${JSON.stringify(options)}`
  const key = needsKey ? `, { key: process.env.${KEY_VARIABLE} ?? '' }` : ''
  return `import { connect } from 'stocktape/client'

const updates = connect(${JSON.stringify(base.href)}${key}).updates(${JSON.stringify(symbols.length > 0 ? symbols : '*')}${given})
for await (const update of updates) console.log(update)`
}

/** Quotes a text for a shell, so that a value from a URL cannot end the quotation. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
