// A file of the upstream is read while its pull runs, whatever the pull has received.
#include "endpoint/arriving_content.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "testing.h"

namespace weft::testing {
namespace {

const HubSource kSource{{"org/m", VersionKind::model}, "main"};

// A hub whose pull ends when the test says so.
class HeldHub final : public UpstreamHub {
 public:
  Result<std::optional<UpstreamCommit>> ask(const HubSource&) override {
    return std::optional(UpstreamCommit{std::string(40, 'c'), {}});
  }
  Status pull(const HubSource&, const std::string&) override {
    while (!ended && !stopped_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return fails ? Status{Error{Errc::io, "the pull failed"}} : Status{};
  }
  void stop() override { stopped_ = true; }
  std::atomic<bool> ended = false, fails = false;

 private:
  std::atomic<bool> stopped_ = false;
};

// The first bytes of a file.
class FirstBytes final : public IncomingFiles {
 public:
  Result<std::size_t> read(const HubName&, const HubFile&, std::uint64_t offset, std::span<std::byte> out) override {
    const std::uint64_t there = count;
    const auto part = as_bytes(content).subspan(std::min(offset, there), there - std::min(offset, there));
    const std::size_t got = std::min(part.size(), out.size());
    std::ranges::copy(part.first(got), out.begin());
    return got;
  }
  std::string content = std::string(as_text(random_bytes(5U << 20U, 1)));
  std::atomic<std::uint64_t> count = 0;
};

struct World {
  HeldHub* hub = nullptr;
  FirstBytes files;
  const std::string stored = files.content;
  std::atomic<bool> cancelled = false;
  std::unique_ptr<Upstream> upstream;
  HubFile file{"m.bin", files.content.size(), std::string(40, 'a'), sha256(as_bytes(files.content))};

  World() {
    auto made = std::make_unique<HeldHub>();
    hub = made.get();
    upstream = std::make_unique<Upstream>(std::move(made), Upstream::Options{});
  }
  ArrivingContent content() {
    return ArrivingContent({*upstream, files, kSource, file,
                            [this](std::uint64_t offset, std::span<std::byte> out) -> Result<std::size_t> {
                              const auto part = as_bytes(stored).subspan(offset);
                              const std::size_t got = std::min(part.size(), out.size());
                              std::ranges::copy(part.first(got), out.begin());
                              return got;
                            },
                            [this] { return cancelled.load(); }});
  }
  // Reads to the end of the file, or to the first error.
  static Result<std::string> read(ArrivingContent& from, std::uint64_t offset, std::uint64_t end) {
    std::string text;
    std::string part(3U << 20U, '?');
    while (offset < end) {
      WEFT_TRY(const std::size_t got, from.read(offset, std::as_writable_bytes(std::span(part))));
      text += part.substr(0, got);
      offset += got;
    }
    return text;
  }
};

}  // namespace

TEST_CASE("a file is read to its last byte once all of it has come, before the pull has ended") {
  World world;
  ArrivingContent content = world.content();
  CHECK_FALSE(content.has(0));
  world.files.count = world.file.size - 1;
  CHECK(content.has(0));
  CHECK(must(World::read(content, 0, world.file.size - 1)) == world.files.content.substr(0, world.file.size - 1));
  std::thread rest([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    world.files.count = world.file.size;
  });
  CHECK(must(World::read(content, world.file.size - 1, world.file.size)) ==
        world.files.content.substr(world.file.size - 1));
  rest.join();
}

TEST_CASE("the end of a file is verified with the bytes before it") {
  World world;
  world.files.count = world.file.size;
  ArrivingContent content = world.content();
  CHECK(must(World::read(content, 4000, world.file.size)) == world.files.content.substr(4000));
  ArrivingContent last = world.content();
  CHECK(must(World::read(last, world.file.size - 1, world.file.size)).size() == 1);
}

TEST_CASE("a wrong byte anywhere keeps the last one back") {
  World world;
  world.files.content[1000] ^= 1;
  world.files.count = world.file.size;
  for (const std::uint64_t from : {std::uint64_t{0}, world.file.size / 2}) {
    ArrivingContent content = world.content();
    CHECK(World::read(content, from, world.file.size - 1).ok());
    std::byte last{};
    CHECK(content.read(world.file.size - 1, std::span(&last, 1)).error().code == Errc::corrupt);
  }
}

TEST_CASE("a wrong byte that the pull had, and the store has not, keeps the last one back") {
  for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{900}}) {
    for (const bool wrong : {true, false}) {
      World world;
      if (wrong) world.files.content[1000] ^= 1;
      world.files.count = 2000;
      ArrivingContent content = world.content();
      CHECK(must(World::read(content, from, 2000)).size() == 2000 - from);
      world.hub->ended = true;  // it has received the bytes again, and has published the file
      CHECK(World::read(content, 2000, world.file.size - 1).ok());
      std::byte last{};
      const auto end = content.read(world.file.size - 1, std::span(&last, 1));
      CHECK(end.ok() == !wrong);
      if (!end.ok()) CHECK(end.error().code == Errc::corrupt);
    }
  }
}

TEST_CASE("a reader gets the error of a pull that fails, and the rest from the store after one that does not") {
  for (const bool fails : {true, false}) {
    World world;
    world.files.count = 1000;
    ArrivingContent content = world.content();
    CHECK(must(World::read(content, 0, 1000)).size() == 1000);
    world.hub->fails = fails;
    world.hub->ended = true;
    const auto rest = World::read(content, 1000, world.file.size);
    CHECK(rest.ok() == !fails);
    if (rest.ok()) CHECK(*rest == world.files.content.substr(1000));
    if (!rest.ok()) CHECK(rest.error().message.find("the pull failed") != std::string::npos);
  }
}

TEST_CASE("a client that leaves ends the wait") {
  World world;
  ArrivingContent content = world.content();
  world.cancelled = true;
  CHECK(World::read(content, 0, 1).error().code == Errc::cancelled);
}

}  // namespace weft::testing
