#include "catalog/scrub_state.h"

#include <fcntl.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"
#include "base/json_value.h"
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

void write_pass(JsonWriter& json, std::string_view key, const std::optional<ScrubPass>& pass) {
  json.key(key);
  if (!pass) {
    json.null();
    return;
  }
  json.begin_object().member("begun_ns", pass->begun_ns).member("ended_ns", pass->ended_ns);
  json.member("packs", pass->packs).member("blobs", pass->blobs).member("bytes", pass->bytes);
  json.member("problems", pass->problems).key("lines").begin_array();
  for (const std::string& line : pass->lines) json.value(printable(line, kLineBytesMax));
  json.end_array().end_object();
}

Result<std::optional<ScrubPass>> read_pass(const JsonValue& state, std::string_view key) {
  const JsonValue* value = state.find(key);
  if (value == nullptr || value->is_null()) return std::optional<ScrubPass>();
  ScrubPass pass;
  WEFT_TRY(pass.begun_ns, value->number("begun_ns"));
  WEFT_TRY(pass.ended_ns, value->number("ended_ns"));
  WEFT_TRY(pass.packs, value->number("packs"));
  WEFT_TRY(pass.blobs, value->number("blobs"));
  WEFT_TRY(pass.bytes, value->number("bytes"));
  WEFT_TRY(pass.problems, value->number("problems"));
  WEFT_TRY(pass.lines, value->texts("lines"));
  pass.lines.resize(std::min(pass.lines.size(), kScrubLinesMax));
  return std::optional(std::move(pass));
}

Result<ScrubState> state_of(const JsonValue& value) {
  ScrubState state;
  WEFT_TRY(state.last, read_pass(value, "last"));
  WEFT_TRY(state.now, read_pass(value, "now"));
  WEFT_TRY(const std::string pack, value.text("next_pack"));
  const auto id = pack_of_name(pack, "");
  if (!id) return Error{Errc::invalid, "\"next_pack\": expected 16 hexadecimal digits"};
  WEFT_TRY(const std::uint64_t offset, value.number("next_offset"));
  state.next = {*id, offset};
  WEFT_TRY(state.assembled, value.flag("next_assembled"));
  return state;
}

}  // namespace

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
  auto state = value.ok() ? state_of(*value) : Result<ScrubState>(value.error());
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
  JsonWriter json;
  json.begin_object();
  write_pass(json, "last", state.last);
  write_pass(json, "now", state.now);
  json.member("next_pack", pack_name(state.next.pack)).member("next_offset", state.next.offset);
  json.member("next_assembled", state.assembled).end_object();
  const std::string text = json.text() + "\n";
  const SafePath path = path_of(store_path);
  const SafePath fresh = path + ".new";
  WEFT_TRY(const Fd fd, open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC));
  WEFT_CHECK(append_exact(fd.get(), std::as_bytes(std::span(text)), fresh));
  WEFT_CHECK(sync_file(fd.get(), fresh));
  WEFT_CHECK(rename_file(fresh, path));
  return sync_directory(store_path);
}

Status remove_scrub_state(const SafePath& store_path) {
  WEFT_CHECK(remove_file(path_of(store_path) + ".new"));
  return remove_file(path_of(store_path));
}

}  // namespace weft
