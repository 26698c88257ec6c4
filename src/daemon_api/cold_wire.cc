#include "daemon_api/cold_wire.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"
#include "blobs/held_pack.h"
#include "os/unix_socket.h"

namespace weft {
namespace {

constexpr std::size_t kPiecesMax = 8192;  // of one answer; who wants more asks again

using Packs = std::vector<std::shared_ptr<const PackReader>>;

Error odd(std::string_view what) {
  return Error{Errc::invalid, fmt::format("the daemon's answer: {}", what)};
}

// A list of `count` numbers.
Result<std::vector<std::uint64_t>> numbers_of(const JsonValue& value, std::size_t count) {
  const JsonValue::Array* array = value.array();
  if (array == nullptr || array->size() != count) return odd(fmt::format("expected {} numbers", count));
  std::vector<std::uint64_t> out;
  for (const JsonValue& one : *array) {
    const std::uint64_t* number = one.number();
    if (number == nullptr) return odd(fmt::format("expected a number, got {}", one.kind()));
    out.push_back(*number);
  }
  return out;
}

Result<Packs> packs_of(const JsonValue& body, std::vector<Fd> fds) {
  WEFT_TRY(const JsonValue::Array* list, body.array("packs"));
  if (list->size() != fds.size()) return odd(fmt::format("{} packs, {} descriptors", list->size(), fds.size()));
  Packs packs;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    WEFT_TRY(const auto numbers, numbers_of((*list)[i], 2));
    packs.push_back(std::make_shared<HeldPack>(std::move(fds[i]), numbers[1], numbers[0]));
  }
  return packs;
}

Result<Run> piece_of(const JsonValue& value, const Packs& packs) {
  WEFT_TRY(const auto numbers, numbers_of(value, 4));
  if (numbers[3] >= packs.size()) return odd("a piece of no pack");
  const auto& pack = packs[numbers[3]];
  if (numbers[0] > limits::kVersionBytesMax || numbers[2] > pack->size() || numbers[1] > pack->size() - numbers[2])
    return odd(fmt::format("a piece of {} bytes at {} of a pack of {}", numbers[1], numbers[2], pack->size()));
  return Run{numbers[0], numbers[1], {pack, numbers[2]}};
}

void write_pieces(JsonWriter& json, const std::vector<Run>& pieces, Packs& packs) {
  json.key("pieces").begin_array();
  for (const Run& piece : pieces) {
    auto at = std::find(packs.begin(), packs.end(), piece.place.pack);
    if (at == packs.end()) at = packs.insert(packs.end(), piece.place.pack);
    json.begin_array().value(piece.offset).value(piece.length).value(piece.place.offset);
    json.value(static_cast<std::uint64_t>(at - packs.begin())).end_array();
  }
  json.end_array();
}

}  // namespace

std::string encode_cold_advice(const ColdAdvice& advice) {
  JsonWriter json;
  json.begin_object().member("policy", name_of(advice.policy)).member("bytes_per_s", advice.bytes_per_s).end_object();
  return json.take();
}

Result<ColdAdvice> decode_cold_advice(const JsonValue& body) {
  WEFT_TRY(const std::string name, body.text("policy"));
  const auto policy = cold_policy_named(name);
  if (!policy)
    return Error{Errc::invalid, fmt::format("policy: expected auto, stream or fetch, got {}", printable(name))};
  ColdAdvice advice{*policy, 0};
  WEFT_TRY(advice.bytes_per_s, body.number("bytes_per_s"));
  return advice;
}

std::string encode_cold_range(const ColdRange& what) {
  JsonWriter json;
  json.begin_object().member("version", what.version).member("file", std::uint64_t{what.file});
  json.member("offset", what.range.offset).member("length", what.range.length).member("ahead", what.ahead);
  json.member("all", what.all);
  return json.end_object().take();
}

Result<ColdRange> decode_cold_range(const JsonValue& body) {
  ColdRange what;
  WEFT_TRY(what.version, body.number("version"));
  WEFT_TRY(const std::uint64_t file, body.number("file"));
  WEFT_TRY(what.range.offset, body.number("offset"));
  WEFT_TRY(what.range.length, body.number("length"));
  WEFT_TRY(what.ahead, body.number_or("ahead", 0));
  WEFT_TRY(what.all, body.flag_or("all", false));
  if (file > limits::kFilesPerVersionMax || what.range.offset > limits::kVersionBytesMax ||
      what.range.length > limits::kVersionBytesMax || what.ahead > limits::kVersionBytesMax)
    return Error{Errc::invalid, "a range of no file"};
  what.file = static_cast<std::uint32_t>(file);
  return what;
}

Result<ColdAnswer> encode_cold_pieces(const std::vector<Run>& pieces) {
  const std::size_t count = std::min(pieces.size(), kPiecesMax);
  std::vector<Run> sent(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(count));
  JsonWriter json;
  Packs packs;
  json.begin_object();
  write_pieces(json, sent, packs);
  // As many packs as go into one message; the first pieces stay.
  while (packs.size() > kFdsAtOnceMax) {
    sent.resize(sent.size() / 2);
    json = JsonWriter();
    packs.clear();
    json.begin_object();
    write_pieces(json, sent, packs);
  }
  json.key("packs").begin_array();
  ColdAnswer answer;
  for (const auto& pack : packs) {
    json.begin_array().value(pack->id()).value(pack->size()).end_array();
    answer.fds.emplace_back(::fcntl(pack->fd(), F_DUPFD_CLOEXEC, 0));
    if (!answer.fds.back().valid()) return sys_error(errno, "a descriptor for a mount");
  }
  answer.body = json.end_array().end_object().take();
  return answer;
}

Result<std::vector<Run>> decode_cold_pieces(const JsonValue& body, std::vector<Fd> fds, Range range) {
  WEFT_TRY(const Packs packs, packs_of(body, std::move(fds)));
  WEFT_TRY(const JsonValue::Array* list, body.array("pieces"));
  std::vector<Run> pieces;
  for (const JsonValue& one : *list) {
    WEFT_TRY(Run piece, piece_of(one, packs));
    const bool touches = pieces.empty() ? piece.offset <= range.offset && range.offset < end_of(piece)
                                        : piece.offset == end_of(pieces.back());
    if (piece.length == 0 || !touches) return odd("pieces that do not cover what was asked for");
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty() && range.length > 0) return odd("no piece");
  return pieces;
}

}  // namespace weft
