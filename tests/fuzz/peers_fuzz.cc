// Requests and answers of other daemons, which any holder of the cluster's key can forge.
#include "fuzzing.h"
#include "peers/address.h"
#include "peers/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto request = decode_request(bytes); request.ok())
    fuzzing::require(decode_request(encode_request(*request)).ok(), "a request encodes to a request");
  if (const auto had = decode_holders(bytes); had.ok())
    fuzzing::require(decode_holders(encode_holders(*had)).value() == *had, "holders encode to themselves");
  static_cast<void>(decode_digests(bytes));
  const AskBytes coded{{{{3U << 20U, {}}, 0, 3}}, false, false, {{{}, 2}}, CodingEffort::sparse, false};
  if (const auto given = decode_given(bytes, coded); given.ok())
    fuzzing::require(given->coded_bytes + given->plain_bytes <= 3U << 20U, "no more bytes than the chunks have");
  if (const auto address = parse_endpoint({reinterpret_cast<const char*>(data), size}))
    fuzzing::require(parse_endpoint(endpoint_text(*address)) == address, "an address has one text");
  return 0;
}
