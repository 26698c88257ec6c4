#include "catalog/scrub_state.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/json_fields.h"
#include "base/text.h"
#include "catalog/layout.h"
#include "diskformat/pack_names.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kBytesMax = 1U << 20U;
constexpr std::size_t kLineBytesMax = 2048;

SafePath path_of(const SafePath& store_path) {
  return store_path / "scrub";
}

}  // namespace

void fields(JsonFields& f, ScrubPass& m) {
  for (std::string& line : m.lines) line = printable(line, kLineBytesMax);
  f("begun_ns", m.begun_ns)("ended_ns", m.ended_ns)("packs", m.packs)("blobs", m.blobs)("bytes", m.bytes);
  f("problems", m.problems)("lines", m.lines);
  m.lines.resize(std::min(m.lines.size(), kScrubLinesMax));
}

void fields(JsonFields& f, ScrubState& m) {
  std::string pack = pack_name(m.next.pack);
  f("last", m.last)("now", m.now)("next_pack", pack)("next_offset", m.next.offset)("next_assembled", m.assembled);
  const auto id = pack_of_name(pack, "");
  m.next.pack = id.value_or(m.next.pack);
  if (!id) f.refuse("\"next_pack\": expected 16 hexadecimal digits");
}

Result<ScrubState> read_scrub_state(const std::string& store_path) {
  WEFT_TRY(const SafePath store, open_store_directory(store_path));
  return read_scrub_state(store);
}

Result<ScrubState> read_scrub_state(const SafePath& store_path) {
  const SafePath path = path_of(store_path);
  auto bytes = read_file(path, kBytesMax);
  if (!bytes.ok() && bytes.error().code == Errc::invalid) return Error{Errc::corrupt, bytes.error().message};
  if (!bytes.ok()) return std::move(bytes).error();
  const auto value = JsonValue::parse({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  auto state = value.ok() ? decode_fields<ScrubState>(*value) : Result<ScrubState>(value.error());
  if (state.ok()) return state;
  return Error{Errc::corrupt, fmt::format("{}: not what a scrub writes: {}", path, state.error().message)};
}

void write_scrub(JsonWriter& json, const std::optional<ScrubPass>& pass) {
  if (!pass) {
    json.null();
    return;
  }
  json.begin_object().member("begun", utc_time(pass->begun_ns)).member("ended", utc_time(pass->ended_ns));
  json.member("packs", pass->packs).member("blobs", pass->blobs).member("bytes", pass->bytes);
  json.member("problems", pass->problems).key("lines").begin_array();
  for (const std::string& line : pass->lines) json.value(line);
  json.end_array().end_object();
}

Status write_scrub_state(const SafePath& store_path, const ScrubState& state) {
  const std::string text = encode_fields(state) + "\n";
  const SafePath path = path_of(store_path);
  return replace_file(path, path + ".new", std::as_bytes(std::span(text)));
}

Status remove_scrub_state(const SafePath& store_path) {
  WEFT_CHECK(remove_file(path_of(store_path) + ".new"));
  return remove_file(path_of(store_path));
}

}  // namespace weft
