// Requests and answers of other daemons, which any holder of the cluster's key can forge.
#include <variant>

#include "fuzzing.h"
#include "peers/address.h"
#include "peers/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto request = decode_request(bytes); request.ok()) {
    const auto again = decode_request(encode_request(*request));
    fuzzing::require(again.ok(), "a request encodes to a request");
    if (const auto* announce = std::get_if<Announce>(&*request))
      fuzzing::require(std::get<Announce>(*again) == *announce, "an announcement encodes to itself");
    if (const auto* join = std::get_if<Join>(&*request))
      fuzzing::require(std::get<Join>(*again) == *join, "a join encodes to itself");
    if (const auto* want = std::get_if<Want>(&*request))
      fuzzing::require(std::get<Want>(*again) == *want, "a want encodes to itself");
    if (const auto* order = std::get_if<KeyOrder>(&*request))
      fuzzing::require(std::get<KeyOrder>(*again) == *order, "an order about a key encodes to itself");
    if (const auto* health = std::get_if<AskHealth>(&*request))
      fuzzing::require(std::get<AskHealth>(*again) == *health, "a question about health encodes to itself");
    if (const auto* keep = std::get_if<KeepVersion>(&*request))
      fuzzing::require(std::get<KeepVersion>(*again) == *keep, "a version to keep encodes to itself");
    if (const auto* pulled = std::get_if<PulledAsk>(&*request)) {
      fuzzing::require(std::get<PulledAsk>(*again) == *pulled, "a question about a pull encodes to itself");
      if (const auto got = decode_received(bytes, *pulled); got.ok())
        static_cast<void>(check_pulled(*pulled, {*got, {}}));
    }
  }
  if (const auto partners = decode_partners(bytes); partners.ok())
    fuzzing::require(decode_partners(encode_partners(*partners)).value() == *partners, "partners encode to themselves");
  if (const auto offered = decode_offer(bytes); offered.ok()) {
    fuzzing::require(decode_offer(encode_offer(offered->offer)).value().offer == offered->offer,
                     "an offer encodes to itself");
    fuzzing::require(offered->bytes.size() == size - kOfferBytes, "the bytes are behind the offer");
  }
  if (const auto nodes = decode_holders(bytes); nodes.ok())
    fuzzing::require(decode_holders(encode_holders(*nodes)).value() == *nodes, "holders encode to themselves");
  const AskHealth health{std::vector<Digest>(3)};
  if (const auto facts = decode_health(bytes, health); facts.ok())
    fuzzing::require(decode_health(encode_health(*facts), health).value() == *facts, "facts encode to themselves");
  static_cast<void>(decode_digests(bytes));
  const PulledAsk pulled{std::string(32, 'a'), "a", {}, (size / 4) * kPieceBytes + 1, 0, 9};
  if (const auto got = decode_received(bytes, pulled); got.ok())
    if (check_pulled(pulled, {*got, {bytes.begin(), bytes.begin() + std::min<std::ptrdiff_t>(9, bytes.size())}}).ok())
      fuzzing::require(got->front() <= kPieceBytes, "a piece has no more bytes than fit");
  const AskBytes coded{{{{3U << 20U, {}}, 0, 3}}, Traffic::foreground, {{{}, 2}}, CodingEffort::sparse, false};
  if (const auto given = decode_given(bytes, coded); given.ok())
    fuzzing::require(given->coded_bytes + given->plain_bytes <= 3U << 20U, "no more bytes than the chunks have");
  if (const auto address = parse_endpoint({reinterpret_cast<const char*>(data), size}))
    fuzzing::require(parse_endpoint(endpoint_text(*address)) == address, "an address has one text");
  return 0;
}
