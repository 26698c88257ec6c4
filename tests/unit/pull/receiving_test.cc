// Files that come from a source over several connections.
#include "pull/receiving.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
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
  Status read(const HubFile& file, Range range, const ByteSink& sink) override {
    sent += range.length;
    {
      UniqueLock lock(mutex_);
      order_.push_back(file.path);
      asked_.notify_all();
      opened_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return closed_ != file.path; });
    }
    return sink(as_bytes(content_.substr(range.offset, range.length)));
  }

  // A read of this file waits until another path is given.
  void close(const std::string& path) {
    const MutexLock lock(mutex_);
    closed_ = path;
    opened_.notify_all();
  }
  void wait_asked(const std::string& path) {  // until a read of this file has begun
    UniqueLock lock(mutex_);
    asked_.wait(lock, [&]() WEFT_REQUIRES(mutex_) { return std::ranges::find(order_, path) != order_.end(); });
  }
  std::vector<std::string> order() {  // the path of each read
    const MutexLock lock(mutex_);
    return order_;
  }

  std::atomic<std::uint64_t> sent{0};

 private:
  const std::string content_;
  Mutex mutex_;
  Condition opened_, asked_;
  std::string closed_ WEFT_GUARDED_BY(mutex_);
  std::vector<std::string> order_ WEFT_GUARDED_BY(mutex_);
};

HubFile listed(const std::string& path, std::size_t size, const std::string& content) {
  return {path, size, std::string(40, 'a'), sha256(as_bytes(content))};
}

struct Place {
  Result<std::unique_ptr<Receiving>> begin(PullSource& source, const std::vector<HubFile>& files) {
    return Receiving::begin(source, options, files, area, no_progress(), failed);
  }
  Result<ReceivedBytes> receive(PullSource& source, const std::vector<HubFile>& files) {
    WEFT_TRY(const auto receiving, begin(source, files));
    WEFT_CHECK(receiving->wait_verified());
    WEFT_CHECK(receiving->end());
    return receiving->bytes();
  }

  TempDir dir;
  PullArea area = must(PullArea::open(must(SafePath::open_owned(dir.path())) / kPullsFolder, "key", {}));
  std::atomic<bool> failed{false};
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

namespace {

const std::string& large() {
  static const std::string content(kArrivingFileMin + 7, 'l');
  return content;
}

HubFile arriving(const std::string& path, const std::string& content = large()) {
  return listed(path, large().size(), content);
}

}  // namespace

TEST_CASE("receiving: the bytes that an import waits for come first, after the files that it needs whole") {
  Place place;
  place.options.into_import = [](const HubFile& file) { return file.path != "known"; };
  place.options.connections = 1;
  FixedSource source(large());
  source.close("small");
  const auto receiving =
      must(place.begin(source, {arriving("a"), arriving("b"), arriving("known"), listed("small", 5, "lllll")}));
  CHECK(receiving->any_arrive());
  CHECK_FALSE(receiving->expected("known"));
  CHECK_FALSE(receiving->expected("small"));
  CHECK(receiving->expected("b") == arriving("b").sha256);
  CHECK(must(stat_file(place.area.files() / "b")).st_size == static_cast<off_t>(large().size()));
  source.wait_asked("small");
  CHECK(must(receiving->await("b", {3, 4})) == 3);  // after a second: nothing is there yet
  source.close("a");
  must(receiving->wait_verified());
  CHECK(must(receiving->await("b", {0, large().size()})) == large().size());
  source.close("");
  CHECK(must(receiving->await("a", {0, 1})) >= 1);
  must(receiving->end());
  CHECK(source.order() == std::vector<std::string>{"known", "small", "b", "a"});
}

TEST_CASE("receiving: an error ends the wait of the import, and so does the end") {
  Place place;
  place.options.into_import = [](const HubFile&) { return true; };
  {
    FixedSource source("short");
    const auto receiving = must(place.begin(source, {arriving("a")}));
    const auto end = receiving->await("a", {0, large().size()});
    REQUIRE_FALSE(end.ok());
    CHECK(receiving->end().error().message == end.error().message);
  }
  FixedSource source(large());
  source.close("a");
  const auto receiving = must(place.begin(source, {arriving("a")}));
  source.close("");
  must(receiving->end());
  must(receiving->end());
}

TEST_CASE("receiving: the places of files that did not begin to arrive give their space back") {
  Place place;
  place.options.into_import = [](const HubFile&) { return true; };
  HubFile huge = arriving("huge");
  huge.size = std::uint64_t{1} << 50U;
  FixedSource source("");
  const auto refused = place.begin(source, {arriving("a"), huge});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Errc::no_space);
  CHECK(must(list_directory(place.area.files())).empty());
  const auto receiving = must(place.begin(source, {arriving("a"), arriving("b")}));
  CHECK_FALSE(receiving->await("b", {0, large().size()}).ok());
  CHECK_FALSE(receiving->end().ok());
  CHECK(must(list_directory(place.area.files())).empty());
}

TEST_CASE("receiving: wrong bytes of an import are dropped, and come again") {
  Place place;
  place.options.into_import = [](const HubFile&) { return true; };
  FixedSource source(large());
  const std::vector<HubFile> files{arriving("a"), arriving("b", "other content")};
  {
    const auto receiving = must(place.begin(source, files));
    CHECK(must(receiving->await("b", {0, large().size()})) == large().size());
    CHECK(must(receiving->await("a", {0, large().size()})) == large().size());
    must(receiving->end());
    CHECK_FALSE(receiving->is_doubtful("b"));
  }
  CHECK(must(drop_damaged(files, place.area)) == std::vector<std::string>{"b"});
  const auto receiving = must(place.begin(source, files));
  CHECK(must(receiving->await("b", {0, large().size()})) == large().size());
  CHECK(must(receiving->await("a", {0, large().size()})) == large().size());
  must(receiving->end());
  CHECK(receiving->is_doubtful("a"));
  CHECK_FALSE(receiving->is_doubtful("b"));
  CHECK(receiving->bytes().bytes == large().size());
}
