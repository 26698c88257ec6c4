// Decodes the list of a bundle. The input is the payload of its record, so that the checksum stops no input. An
// accepted list encodes and decodes to an equal one. Seeds are payloads written by encode_bundle_list().
#include <set>
#include <string>

#include "base/limits.h"
#include "diskformat/bundle_list.h"
#include "diskformat/record.h"
#include "fuzzing.h"

namespace weft::fuzzing {
namespace {

void require_sound(const BundleList& list) {
  std::set<ContentId> blobs;
  std::uint64_t bytes = 0;
  for (const BundledVersion& version : list.versions) {
    require(check_key_name(version.row.model_name).ok() && version.row.number != 0, "versions have names");
    require(version.manifest_bytes <= limits::kManifestMax, "manifests are bounded");
    for (const ContentId& id : version.blobs) {
      require(id.length != 0 && blobs.insert(id).second, "each blob is there once");
      bytes += id.length;
      require(bytes <= limits::kBundleBytesMax, "sizes do not wrap");
    }
  }
}

}  // namespace
}  // namespace weft::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  using namespace weft::fuzzing;
  const std::vector<std::byte> record = seal_record(RecordKind::bundle, std::as_bytes(std::span(data, size)));
  const auto list = decode_bundle_list(record, "input");
  if (!list.ok()) {
    const Error& error = list.error();
    require(error.message.starts_with("input: ") && error.message.find('\n') == std::string::npos,
            "messages are one line and begin with the place");
    require(error.code == Errc::corrupt || error.code == Errc::unsupported, "a bad list is called that");
    return 0;
  }
  require_sound(*list);
  const auto again = decode_bundle_list(encode_bundle_list(*list), "again");
  require(again.ok(), "an accepted list encodes");
  require(again->versions.size() == list->versions.size() && again->tags.size() == list->tags.size(),
          "nothing is lost");
  return 0;
}
