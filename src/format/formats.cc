#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/text.h"
#include "format/builtin.h"
#include "format/layout.h"
#include "format/parse_errors.h"
#include "weft/model/format.h"
#include "weft/model/lfs_pointer.h"
#include "weft/model/manifest.h"
#include "weft/model/records.h"

namespace weft {
namespace {

// First bytes of a file that show its kind. Formats get the first kFormatHead of them.
constexpr std::size_t kHead = kContainerHead;
constexpr std::size_t kFormatHead = 16;

Result<std::vector<std::byte>> read_head(ByteSource& source, std::size_t count) {
  std::vector<std::byte> head(std::min<std::uint64_t>(count, source.size()));
  WEFT_CHECK(source.read(0, head));
  return head;
}

// A group of a single file.
class LoneFile final : public FormatInput {
 public:
  LoneFile(std::string_view name, ByteSource& source) : name_(name), source_(source) {}
  std::string_view name() const override { return name_; }
  ByteSource& main() override { return source_; }
  Result<ByteSource*> beside(std::string_view path) override {
    return Error{Errc::not_found, fmt::format("no file {} is published with it", printable(path))};
  }

 private:
  std::string_view name_;
  ByteSource& source_;
};

// Returns the first format that claims a file of this name with these first bytes; nullptr: none.
const Format* claimant(Formats formats, std::string_view file_name, std::span<const std::byte> head) {
  auto it = std::find_if(formats.begin(), formats.end(),
                         [&](const Format* format) { return format->claims(file_name, head); });
  return it == formats.end() ? nullptr : *it;
}

Status refuse_pointer(FormatInput& files) {
  ByteSource& source = files.main();
  if (source.size() > kLfsPointerMax) return {};
  WEFT_TRY(const std::vector<std::byte> head, read_head(source, kLfsPointerHead));
  return refuse_lfs_pointer(files.name(), source.size(), head);
}

// Returns the layout of an opaque file, which may be a container. Records of a container are not tensors.
Layout container_layout(std::string_view file_name, std::span<const std::byte> head) {
  Layout layout;
  if (const ContainerFormat* format = container_format(file_name, head)) layout.format = format->name();
  return layout;
}

// A file whose name claims a format is kept as it is if only weft cannot read it. A file that claims the format by its
// first bytes alone is kept in any case: its name promises nothing to a reader.
Result<Layout> parse_claimed(FormatInput& files, Formats formats) {
  WEFT_CHECK(refuse_pointer(files));
  if (const Format* format = claimant(formats, files.name(), {})) {
    auto layout = format->parse(files);
    if (!layout.ok() && layout.error().code == Errc::unsupported) return unread_layout(layout.error());
    return layout;
  }
  WEFT_TRY(std::vector<std::byte> head, read_head(files.main(), kHead));
  const std::span<const std::byte> first = head;
  const Format* format = claimant(formats, files.name(), first.first(std::min(head.size(), kFormatHead)));
  if (format == nullptr) return container_layout(files.name(), head);
  auto layout = format->parse(files);
  if (!layout.ok() && is_malformed(layout.error())) return unread_layout(layout.error());
  return layout;
}

}  // namespace

Formats all_formats() {
  static const std::array<const Format*, 11> formats = {
      &safetensors_format(), &gguf_format(),   &npy_format(),  &dcp_format(),
      &archive_format(),     &onnx_format(),   &hdf5_format(), &torch_legacy_format(),
      &tf_bundle_format(),   &tflite_format(), &flax_format()};
  return formats;
}

Layout unread_layout(const Error& why) {
  Layout layout;
  layout.metadata.emplace_back(kNoTensors, printable(why.message, limits::kMetadataTextMax));
  return layout;
}

Result<Layout> parse_file(std::string_view where, FormatInput& files, Formats formats) {
  auto layout = parse_claimed(files, formats);
  if (!layout.ok()) return locate(where, std::move(layout).error());
  if (Status checked = check_layout(*layout); !checked.ok()) return locate(where, std::move(checked).error());
  return layout;
}

Result<Layout> parse_file(std::string_view where, std::string_view file_name, ByteSource& source) {
  LoneFile file(file_name, source);
  return parse_file(where, file);
}

Error locate(std::string_view where, Error error) {
  if (!where.empty() && !error.message.starts_with(where)) error.message = fmt::format("{}: {}", where, error.message);
  return error;
}

bool is_malformed(const Error& error) {
  return error.code == Errc::invalid || error.code == Errc::unsupported;
}

}  // namespace weft
