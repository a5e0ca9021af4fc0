import { type BoardFilter, filterParameters } from '../shared/board-route.ts'

export const programKinds = ['curl', 'wscat', 'TypeScript', 'Python'] as const
export type ProgramKind = (typeof programKinds)[number]

/** Makes a program that receives exactly the messages that the filter selects. */
export function programFor(kind: ProgramKind, filter: BoardFilter, base: URL): string {
  const query = filterParameters({ ...filter, symbols: filter.symbols.length > 0 ? filter.symbols : ['*'] }).join('&')
  const stream = new URL(`v1/stream?${query}`, base).href
  switch (kind) {
    case 'curl':
      return `curl -N ${quoted(`${stream}&format=ndjson`)}`
    case 'wscat':
      return `npx wscat -c ${quoted(new URL(`v1/ws?${query}`, base).href.replace(/^http/, 'ws'))}`
    case 'TypeScript':
      return typescriptFor(filter, base)
    case 'Python':
      return `import json, urllib.request

url = ${JSON.stringify(`${stream}&format=ndjson`)}
for line in urllib.request.urlopen(url):
    print(json.loads(line))`
  }
}

function typescriptFor({ symbols, types, minValue, account }: BoardFilter, base: URL): string {
  const options = {
    ...(types.length > 0 && { types }),
    ...(minValue !== '' && { minValue }),
    ...(account.length > 0 && { account }),
  }
  const given = Object.keys(options).length === 0 ? '' : `, ${JSON.stringify(options)}`
  return `import { connect } from 'stocktape/client'

const updates = connect(${JSON.stringify(base.href)}).updates(${JSON.stringify(symbols.length > 0 ? symbols : '*')}${given})
for await (const update of updates) console.log(update)`
}

/** Quotes a text for a shell, so that a value from a URL cannot end the quotation. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
