// Files that come from a source over several connections.
#include "pull/receiving.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "testing.h"

using namespace weft;
using namespace weft::testing;

namespace {

// A source that gives one content for all files, whatever the listing says.
class FixedSource final : public PullSource {
 public:
  explicit FixedSource(std::string content) : content_(std::move(content)) {}
  std::string text() const override { return "hf:org/m"; }
  VersionKind kind() const override { return VersionKind::model; }
  Result<std::string> name() const override { return std::string("org/m"); }
  std::string revision() const override { return {}; }
  std::optional<std::string> tag() const override { return std::nullopt; }
  std::string key() const override { return "key"; }
  Result<PullListing> list() override { return PullListing{}; }
  Status read(const HubFile& /*file*/, Range range, const ByteSink& sink) override {
    sent += range.length;
    return sink(as_bytes(content_.substr(range.offset, range.length)));
  }

  std::atomic<std::uint64_t> sent{0};

 private:
  const std::string content_;
};

HubFile listed(const std::string& path, std::size_t size, const std::string& content) {
  return {path, size, std::string(40, 'a'), sha256(as_bytes(content))};
}

struct Place {
  Result<ReceivedBytes> receive(PullSource& source, const std::vector<HubFile>& files) {
    std::atomic<bool> failed{false};
    return receive_files(source, options, files, area, no_progress(), failed);
  }

  TempDir dir;
  PullArea area = must(PullArea::open(must(SafePath::open_owned(dir.path())) / kPullsFolder, "key", {}));
  ReceiveOptions options{[](const HubFile& file, const ByteSink&) -> Status {
    return Error{Errc::not_found, file.path};
  }};
};

void check_refused(const Result<ReceivedBytes>& received, const std::string& path) {
  REQUIRE_FALSE(received.ok());
  CHECK(received.error().code == Errc::corrupt);
  CHECK(received.error().message.find(path) != std::string::npos);
}

}  // namespace

TEST_CASE("receiving: an empty file with the digest of other bytes is refused") {
  Place place;
  FixedSource source("a");
  check_refused(place.receive(source, {listed("a", 1, "a"), listed("empty", 0, "not empty")}), "empty");
  CHECK(place.receive(source, {listed("a", 1, "a"), listed("empty", 0, "")}).ok());
}

TEST_CASE("receiving: a file whose bytes are all the source's own and wrong comes once") {
  Place place;
  FixedSource source("wrong");
  place.options.connections = 1;  // another connection may begin before the error is known
  check_refused(place.receive(source, {listed("a", 5, "right")}), "\"a\"");
  CHECK(source.sent == 5);
}

TEST_CASE("receiving: wrong known bytes come from the source instead") {
  Place place;
  FixedSource source("right");
  place.options.known = [](const HubFile&, const ByteSink& sink) { return sink(as_bytes(std::string("wrong"))); };
  const ReceivedBytes got = must(place.receive(source, {listed("a", 5, "right")}));
  CHECK(got.bytes == 5);
  CHECK(got.known == 5);
}
