// A place that a pull receives files from: a revision of a hub, or URLs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/hub_client.h"
#include "weft/content.h"
#include "weft/names.h"
#include "weft/result.h"
#include "weft/store_rows.h"

namespace weft {

struct PullListing {
  std::vector<HubFile> files;  // by path; at least one
  Provenance source;           // of the version; passes check_source()
  std::string description;     // the same for people
};

// Any thread. Messages begin with text(), or with the URL of a file.
class PullSource {
 public:
  virtual ~PullSource() = default;
  virtual std::string text() const = 0;  // "hf:org/bert"
  virtual VersionKind kind() const = 0;
  // Returns the name of the version. Errc::invalid: the source gives none that a version can have.
  virtual Result<std::string> name() const = 0;
  virtual std::string revision() const = 0;            // of a hub; else ""
  virtual std::optional<std::string> tag() const = 0;  // of the version
  virtual std::string key() const = 0;                 // of the PullArea
  // Asks for the files. Errors as HubClient and HttpReader.
  virtual Result<PullListing> list() = 0;
  // As HubClient::read(), of a file that list() returned.
  virtual Status read(const HubFile& file, Range range, const ByteSink& sink) = 0;
};

std::unique_ptr<PullSource> hub_source(HubSource source, HubSettings settings, HttpReaderOptions reading);

// Receives a file from each URL, under the last component of the URL's path. `sha256`: the digest of each, in
// hexadecimal. The servers have to answer requests for ranges. No token is sent. Errc::invalid: not as many digests as
// URLs, a malformed one, or two files of one name.
Result<std::unique_ptr<PullSource>> url_source(std::span<const std::string> urls, std::span<const std::string> sha256,
                                               VersionKind kind, HttpReaderOptions reading);

}  // namespace weft
