import { expect, it } from 'vitest'
import { acceptDeflateOffer } from '../../../../../src/relay/edge/transport/deflate-offer.ts'

it.each([
  ['permessage-deflate', 'permessage-deflate', 'batch'],
  ['permessage-deflate; client_max_window_bits', 'permessage-deflate', 'batch'],
  ['permessage-deflate;client_max_window_bits=8;client_no_context_takeover', 'permessage-deflate', 'batch'],
  ['permessage-deflate ; server_max_window_bits = 15', 'permessage-deflate; server_max_window_bits=15', 'batch'],
  ['permessage-deflate; server_max_window_bits="12"', 'permessage-deflate; server_max_window_bits=12', 'batch'],
  ['permessage-deflate; server_no_context_takeover', 'permessage-deflate; server_no_context_takeover', 'message'],
  ['permessage-bzip2, permessage-deflate', 'permessage-deflate', 'batch'],
  ['permessage-deflate; server_max_window_bits=11, permessage-deflate', 'permessage-deflate', 'batch'],
  [
    'permessage-deflate; other, permessage-deflate; server_no_context_takeover',
    'permessage-deflate; server_no_context_takeover',
    'message',
  ],
] as const)('the offer %s is accepted as %s, with each %s compressed', (offer, header, compression) => {
  expect(acceptDeflateOffer(offer)).toEqual({ header, compression })
})

it.each([
  ...['', 'permessage-bzip2', 'PERMESSAGE-DEFLATE'],
  ...['', '=7', '=8', '=11', '=012', '=16', '=12; server_max_window_bits=12'].map(
    (bits) => `permessage-deflate; server_max_window_bits${bits}`,
  ),
  ...['client_max_window_bits=7', 'client_max_window_bits=16', 'client_no_context_takeover=1', 'server_no_context_takeover=1'].map(
    (parameter) => `permessage-deflate; ${parameter}`,
  ),
  'permessage-deflate; server_no_context_takeover; server_no_context_takeover',
  ...['permessage-deflate; constructor', 'permessage-deflate; ; =', 'permessage-deflate;'],
])('the offer %j is declined', (offer) => {
  expect(acceptDeflateOffer(offer)).toBeNull()
})
