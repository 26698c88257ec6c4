// The files of torch.save before PyTorch 1.6, which later ones write on request, and other pickles. A file of PyTorch
// has five pickles: a number, the version 1001, facts about the writer, the value, and the keys of its storages. The
// storages follow in the order of the keys, each as a count of elements of 8 bytes and its bytes. (Source:
// torch/serialization.py, _legacy_save().) torch.load runs any other pickle too, so the globals of each are listed.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "format/builtin.h"
#include "format/cursor.h"
#include "format/parse_errors.h"
#include "format/torch/pickle.h"
#include "format/torch/torch_globals.h"
#include "format/torch/torch_tensors.h"
#include "format/torch/torch_values.h"

namespace weft {
namespace {

using Kind = Pickle::Kind;
using Value = Pickle::Value;

constexpr std::string_view kLegacyMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::int64_t kLegacyVersion = 1001;
constexpr char kProtocol = '\x80';  // the opcode at the begin of pickles since protocol 2

Error broken_legacy(std::string what) {
  return Error{Errc::unsupported, std::move(what)};
}

// Reads one file once.
class TorchLegacy {
 public:
  explicit TorchLegacy(ByteSource& file) : file_(file), tensors_(layout_) {}

  Result<Layout> read();

 private:
  Status read_pickles();
  Status load(std::uint64_t bytes);
  Status read_values();
  Status list_rest();
  Status check_writer(Value facts) const;
  Status add_tensors();
  Status place_storages();
  Result<Range> place_storage(Value key, std::uint64_t& at);

  ByteSource& file_;
  Layout layout_;
  TorchTensors tensors_;
  std::optional<Pickle> pickle_;
  bool is_torch_ = false;      // the file has the magic number
  bool has_protocol_ = false;  // the file begins with kProtocol
  Value value_ = Pickle::kNone, keys_ = Pickle::kNone;
  std::unordered_map<std::string_view, TorchStorageId> ids_;  // by key; views of the pickle
  std::unordered_map<std::string_view, Range> places_;        // by key
};

Result<Layout> TorchLegacy::read() {
  Status done = read_pickles();
  if (done.ok() && !is_torch_) done = list_rest();
  if (done.ok()) done = add_tensors();
  if (!done.ok() && !is_malformed(done.error())) return std::move(done).error();
  if (done.ok()) {
    layout_.format = is_torch_ ? "torch legacy" : "pickle";
    tensors_.finish();
  } else if (done.error().code == Errc::invalid && pickle_->globals().empty() && !has_protocol_) {
    return Layout{};  // no pickle: any file may begin like one
  } else {
    layout_ = unread_layout(done.error());
  }
  keep_globals(layout_, pickle_->globals());
  return std::move(layout_);
}

// Most pickles are much smaller than their file, so their length is found by trials.
Status TorchLegacy::read_pickles() {
  constexpr std::uint64_t kFirst = 1U << 20U;
  const std::uint64_t all = std::min(file_.size(), limits::kPickleMax);
  for (std::uint64_t bytes = std::min(all, kFirst);; bytes = std::min(all, 4 * bytes)) {
    WEFT_CHECK(load(bytes));
    Status done = read_values();
    if (done.ok() || !pickle_->ran_out()) return done;
    if (bytes < all) continue;
    return all == file_.size() ? done
                               : broken_legacy(fmt::format("expected pickles of at most {} bytes, got more", all));
  }
}

Status TorchLegacy::load(std::uint64_t bytes) {
  pickle_.reset();
  std::string text(static_cast<std::size_t>(bytes), '\0');
  WEFT_CHECK(file_.read(0, std::as_writable_bytes(std::span(text))));
  has_protocol_ = text.starts_with(kProtocol);
  pickle_.emplace(std::move(text));
  return {};
}

Status TorchLegacy::read_values() {
  WEFT_TRY(value_, pickle_->read_next());
  is_torch_ = pickle_->kind(value_) == Kind::number && pickle_->text(value_) == kLegacyMagic;
  if (!is_torch_) return {};
  WEFT_TRY(const Value version, pickle_->read_next());
  WEFT_TRY(const Value facts, pickle_->read_next());
  WEFT_TRY(value_, pickle_->read_next());
  WEFT_TRY(keys_, pickle_->read_next());
  if (pickle_->kind(version) != Kind::integer || pickle_->integer(version) != kLegacyVersion)
    return broken_legacy(fmt::format("expected a file of PyTorch of version {}, got another one", kLegacyVersion));
  return check_writer(facts);
}

// Reads the pickles behind the first for their globals. They need not be sound.
Status TorchLegacy::list_rest() {
  const std::uint64_t all = std::min(file_.size(), limits::kPickleMax);
  if (pickle_->position() < all) {
    WEFT_CHECK(load(all));
    WEFT_CHECK(read_values());
  }
  while (!pickle_->at_end()) static_cast<void>(pickle_->read_next());
  return {};
}

Status TorchLegacy::check_writer(Value facts) const {
  const TorchValues values(*pickle_);
  constexpr int kFactsMax = 64;
  int seen = 0;
  if (pickle_->kind(facts) == Kind::dict)
    for (const auto& [key, value] : pickle_->pairs(facts)) {
      if (values.text(key) == "little_endian" && values.is_true(value)) return {};
      if (++seen == kFactsMax) break;
    }
  return broken_legacy("expected a little-endian file of PyTorch, got another byte order");
}

Status TorchLegacy::add_tensors() {
  if (is_torch_) WEFT_CHECK(place_storages());
  const StoragePlace storages = [this](std::string_view key) -> Result<Range> {
    const auto found = places_.find(key);
    if (found == places_.end()) return Error{Errc::not_found, "its storage is not in the file"};
    return found->second;
  };
  return tensors_.add(*pickle_, value_, "", 0, storages);
}

// The first id of a storage says its type, as for torch.load.
Status TorchLegacy::place_storages() {
  const TorchValues values(*pickle_);
  for (Value value = 0; value < pickle_->values(); ++value)
    if (const auto id = values.storage_id(value)) ids_.try_emplace(id->key, *id);
  if (pickle_->kind(keys_) != Kind::list) return broken_legacy("expected a list of the keys of the storages");
  std::uint64_t at = pickle_->position();
  for (const Value key : pickle_->items(keys_)) {
    WEFT_TRY(const Range bytes, place_storage(key, at));
    if (bytes.length > 0) layout_.cuts.push_back({0, bytes.offset, bytes.length});
  }
  return {};
}

// Reads the count at `at`, and sets `at` to the end of the storage.
Result<Range> TorchLegacy::place_storage(Value key, std::uint64_t& at) {
  const std::string_view name = TorchValues(*pickle_).text(key);
  const auto id = ids_.find(name);
  if (id == ids_.end())
    return broken_legacy(fmt::format("expected a tensor in the storage \"{}\", got none", printable(name)));
  const std::uint64_t width = torch_storage_width(id->second.type_name);
  if (width == 0) return broken_legacy(fmt::format("a type that weft lacks, {}", printable(id->second.type_name)));
  std::array<std::byte, 8> count{};
  if (file_.size() - at < count.size()) return broken_legacy("expected a storage, got the end of the file");
  WEFT_CHECK(file_.read(at, count));
  at += count.size();
  std::uint64_t bytes = 0;
  const auto elements = load_le<std::uint64_t>(count.data());
  if (elements != id->second.elements || __builtin_mul_overflow(elements, width, &bytes) || bytes > file_.size() - at)
    return broken_legacy(fmt::format("expected {} elements in the storage \"{}\", got {} and {} bytes",
                                     id->second.elements, printable(name), elements, file_.size() - at));
  const Range place{at, bytes};
  if (!places_.try_emplace(name, place).second)
    return broken_legacy(fmt::format("expected the storage \"{}\" once, got it twice", printable(name)));
  at += bytes;
  return place;
}

// True if programs load files of such names as pickles.
bool has_pickle_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kEndings = {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle"};
  return std::ranges::any_of(kEndings, [name](std::string_view ending) { return name.ends_with(ending); });
}

// True if a pickle that begins so names a global, or is sound as far as it is here.
bool may_name_globals(std::span<const std::byte> head) {
  Pickle pickle(std::string(reinterpret_cast<const char*>(head.data()), head.size()));
  static_cast<void>(pickle.read_next());
  return !pickle.globals().empty() || pickle.ran_out();
}

class TorchLegacyFormat final : public Format {
 public:
  std::string_view name() const override { return "pickle"; }

  // No text begins with the opcode of a protocol. The third byte is the first opcode of a value, or of a frame. Python
  // loads pickles with other beginnings too, and those before protocol 2 have none.
  bool claims(std::string_view file_name, std::span<const std::byte> head) const override {
    constexpr std::string_view kFirstOpcodes = "\x95\x8a\x8c\x88\x89}])(NKMJGXUCBc";
    if (head.size() < 3) return false;
    const bool has_protocol = static_cast<char>(head[0]) == kProtocol && head[1] <= std::byte{5};
    if (has_protocol && kFirstOpcodes.find(static_cast<char>(head[2])) != std::string_view::npos) return true;
    return (has_protocol || has_pickle_name(file_name)) && may_name_globals(head);
  }

  Result<Layout> parse(FormatInput& files) const override { return TorchLegacy(files.main()).read(); }
};

}  // namespace

const Format& torch_legacy_format() {
  static const TorchLegacyFormat format;
  return format;
}

}  // namespace weft
