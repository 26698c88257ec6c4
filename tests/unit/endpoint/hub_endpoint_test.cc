// The endpoint asked without HTTP, over a store in a temporary directory.
#include "endpoint/hub_endpoint.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_value.h"
#include "base/sha256.h"
#include "endpoint/served_listing.h"
#include "fakes/node_fixture.h"
#include "made_onnx.h"
#include "unit/vfs/publish_dataset.h"
#include "upstream/upstream.h"
#include "weft/store/gc.h"
#include "weft/store/walk.h"

namespace weft::testing {
namespace {

// A node without others.
class NoOthers final : public ColdReads {
 public:
  Status resolve(VersionId /*version*/) override { return Error{Errc::absent, "no other node"}; }
  Result<std::vector<Run>> bring(const ColdRange& /*what*/) override {
    return Error{Errc::unreachable, "no other node"};
  }
};

struct EndpointFixture : Fixture {
  NoOthers others;
  HubEndpoint endpoint{*store, others, std::nullopt};

  void publish_text(const std::string& name, const std::string& text, const std::vector<std::string>& tags = {},
                    bool is_dataset = false) {
    const std::string source = dir / "source";
    std::filesystem::remove_all(source);
    std::filesystem::create_directories(source + "/sub");
    write_file(source + "/a.txt", text);
    write_file(source + "/sub/b.txt", "b");
    ImportOptions options;
    options.paths = {source};
    options.name = name;
    options.tags = tags;
    options.dataset = is_dataset;
    must(import_paths(*store, options, no_progress()));
  }

  HttpReply ask(std::string_view path, HttpFields fields = {}, HttpRequest::Method method = HttpRequest::Method::get,
                HttpFields arguments = {}) {
    HttpRequest request;
    request.method = method;
    request.path = must(parse_http_path(path));
    request.fields = std::move(fields);
    request.arguments = std::move(arguments);
    return endpoint.reply(request);
  }
  std::string text(std::string_view path, HttpFields fields = {}) {
    HttpReply reply = ask(path, std::move(fields));
    if (auto* const body = std::get_if<std::string>(&reply.body)) return *body;
    if (auto* const file = std::get_if<HttpFile>(&reply.body)) {
      std::string bytes(file->length, '\0');
      must(read_exact(file->fd.get(), file->offset, std::as_writable_bytes(std::span(bytes)), "file"));
      return bytes;
    }
    const auto& content = std::get<HttpContent>(reply.body);
    std::string bytes;
    while (bytes.size() < content.length) {
      std::string part(content.length - bytes.size(), '\0');
      const std::size_t got = must(content.read(bytes.size(), std::as_writable_bytes(std::span(part))));
      bytes += part.substr(0, got);
    }
    return bytes;
  }
  JsonValue json(std::string_view path, HttpFields arguments = {}) {
    const HttpReply reply = ask(path, {}, HttpRequest::Method::get, std::move(arguments));
    CHECK(reply.status == 200);
    return must(JsonValue::parse(std::get<std::string>(reply.body)));
  }
  std::string commit(const std::string& spec) { return commit_of(must(version_of(*store, spec))); }
};

std::string field_of(const HttpReply& reply, std::string_view name) {
  for (const auto& [own, value] : reply.fields)
    if (own == name) return value;
  return {};
}

std::vector<std::string> paths_in(const JsonValue& rows) {
  std::vector<std::string> paths;
  for (const JsonValue& row : *rows.array()) paths.push_back(must(row.text("path")));
  return paths;
}

const std::string kHubCommit(40, 'c');

// A hub with the branch main and the tag v1 of org/hub, which have one commit. A pull publishes it.
class TestUpstream final : public UpstreamHub {
 public:
  explicit TestUpstream(Store& store, std::string source) : store_(store), source_(std::move(source)) {}
  Result<std::optional<UpstreamCommit>> ask(const HubSource& source) override {
    if (source.repository.name != "org/hub") return Error{Errc::not_found, "no such model"};
    if (source.revision != "main" && source.revision != "v1") return std::optional<UpstreamCommit>();
    return std::optional(UpstreamCommit{
        kHubCommit, {{"a.txt", 6, std::string(40, 'b'), {}}, {"sub/b.txt", 1, std::string(40, 'd'), {}}}});
  }
  Status pull(const HubSource& source, const std::string& commit) override {
    while (!may_end_ && !stopped_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stopped_) return Error{Errc::cancelled, "stopped"};
    testing::write_file(source_ + "/a.txt", "pulled");
    testing::write_file(source_ + "/sub/b.txt", "b");
    ImportOptions options;
    options.paths = {source_};
    options.name = source.repository.name;
    options.tags = {source.revision};
    options.source.commit = commit;
    const auto done = import_paths(store_, options, no_progress());
    return done.ok() ? Status{} : Status{done.error()};
  }
  void stop() override { stopped_ = true; }
  void end_pull() { may_end_ = true; }

 private:
  Store& store_;
  const std::string source_;
  std::atomic<bool> may_end_ = false, stopped_ = false;
};

TEST_CASE("what the store lacks is pulled, and its listing answers before") {
  EndpointFixture f;
  auto hub = std::make_unique<TestUpstream>(*f.store, f.dir / "upstream");
  TestUpstream& upstream_hub = *hub;
  Upstream upstream(std::move(hub), {});
  HubEndpoint endpoint(*f.store, f.others, std::nullopt, &upstream);
  const auto ask = [&](std::string_view path, HttpRequest::Method method = HttpRequest::Method::get) {
    HttpRequest request;
    request.method = method;
    request.path = must(parse_http_path(path));
    return endpoint.reply(request);
  };
  const auto sha_of = [&](std::string_view path) {
    return must(must(JsonValue::parse(std::get<std::string>(ask(path).body))).text("sha"));
  };
  CHECK(sha_of("/api/models/org/hub") == kHubCommit);
  CHECK(field_of(ask("/api/models/org/none"), "X-Error-Code") == "RepoNotFound");
  CHECK(field_of(ask("/api/models/org/hub/revision/v2"), "X-Error-Code") == "RevisionNotFound");
  CHECK(ask("/api/models/org/hub", HttpRequest::Method::post).status == 404);
  const HttpReply head = ask("/org/hub/resolve/main/a.txt", HttpRequest::Method::head);
  CHECK(head.status == 200);
  CHECK(field_of(head, "ETag") == '"' + std::string(40, 'b') + '"');
  CHECK(std::get<HttpFile>(head.body).length == 6);
  CHECK(field_of(ask("/org/hub/resolve/main/c.txt"), "X-Error-Code") == "EntryNotFound");
  const JsonValue tree = must(JsonValue::parse(std::get<std::string>(ask("/api/models/org/hub/tree/main").body)));
  CHECK(paths_in(tree) == std::vector<std::string>{"a.txt", "sub"});
  CHECK(ask("/api/models/org/hub/tree/main/none").status == 404);
  upstream_hub.end_pull();
  const HttpReply file = ask("/org/hub/resolve/main/a.txt");
  CHECK(file.status == 200);
  CHECK(field_of(file, "X-Repo-Commit") == kHubCommit);
  CHECK(sha_of("/api/models/org/hub/revision/main") == kHubCommit);
  CHECK(sha_of("/api/models/org/hub/revision/1") == kHubCommit);
  CHECK(must(f.json("/api/models/org/hub").text("sha")) == f.commit("org/hub@1"));  // without an upstream
  CHECK(upstream.counts().begun == 1);
  CHECK(endpoint.counts().of(static_cast<std::size_t>(HubRoute::What::file), 0) == 2);
}

TEST_CASE("a version of the hub under another tag does not stand in for main") {
  EndpointFixture f;
  auto hub = std::make_unique<TestUpstream>(*f.store, f.dir / "upstream");
  hub->end_pull();
  Upstream upstream(std::move(hub), {});
  HubEndpoint endpoint(*f.store, f.others, std::nullopt, &upstream);
  const auto status_of = [&](std::string_view path) {
    HttpRequest request;
    request.path = must(parse_http_path(path));
    return endpoint.reply(request).status;
  };
  CHECK(status_of("/org/hub/resolve/v1/a.txt") == 200);
  CHECK(upstream.counts().asked == 1);
  CHECK(status_of("/org/hub/resolve/main/a.txt") == 200);
  CHECK(upstream.counts().asked == 2);
  f.publish_text("org/own", "own");
  CHECK(status_of("/org/own/resolve/main/a.txt") == 200);  // of no hub: its newest version is main
  CHECK(upstream.counts().asked == 2);
}

TEST_CASE("the revision safetensors of hub/ is not served, and a tag of this name is") {
  EndpointFixture f;
  write_file(f.dir / "onnx/model.onnx", onnx_file(std::string(16, 'a')));
  f.publish({f.dir / "onnx"}, "org/m");
  REQUIRE(f.ask("/api/models/org/m/revision/main").status == 200);
  const HttpReply reply = f.ask("/org/m/resolve/safetensors/model.safetensors");
  CHECK(reply.status == 404);
  CHECK(field_of(reply, "X-Error-Code") == "RevisionNotFound");
  must(f.store->set_tag("org/m", "safetensors", 1));
  CHECK(f.ask("/org/m/resolve/safetensors/model.onnx").status == 200);
}

TEST_CASE("a model of the cluster gets no revision of a repository that has its name at the hub") {
  EndpointFixture f;
  f.publish_text("org/hub", "own", {"tested"});
  auto hub = std::make_unique<TestUpstream>(*f.store, f.dir / "upstream");
  hub->end_pull();
  Upstream upstream(std::move(hub), {});
  HubEndpoint endpoint(*f.store, f.others, std::nullopt, &upstream);
  for (const char* path : {"/org/hub/resolve/v1/a.txt", "/api/models/org/hub/revision/v1"}) {
    HttpRequest request;
    request.path = must(parse_http_path(path));
    CHECK(field_of(endpoint.reply(request), "X-Error-Code") == "RevisionNotFound");
  }
  CHECK(upstream.counts().asked == 0);
  CHECK(must(version_of(*f.store, "org/hub")).number == 1);
}

TEST_CASE("a model of the hub that has the name of a data set is not pulled") {
  EndpointFixture f;
  f.publish_text("org/hub", "own", {}, true);
  auto hub = std::make_unique<TestUpstream>(*f.store, f.dir / "upstream");
  hub->end_pull();
  Upstream upstream(std::move(hub), {});
  HubEndpoint endpoint(*f.store, f.others, std::nullopt, &upstream);
  HttpRequest request;
  request.path = must(parse_http_path("/org/hub/resolve/main/a.txt"));
  CHECK(field_of(endpoint.reply(request), "X-Error-Code") == "RepoNotFound");
  CHECK(upstream.counts().asked == 0);
}

TEST_CASE("a page of another site has nothing pulled") {
  EndpointFixture f;
  auto hub = std::make_unique<TestUpstream>(*f.store, f.dir / "upstream");
  hub->end_pull();
  Upstream upstream(std::move(hub), {});
  HubEndpoint endpoint(*f.store, f.others, std::nullopt, &upstream);
  HttpRequest request;
  request.path = must(parse_http_path("/org/hub/resolve/main/a.txt"));
  for (const char* site : {"cross-site", "same-site"}) {
    request.fields = {{"Host", "127.0.0.1:80"}, {"Sec-Fetch-Site", site}};
    CHECK(endpoint.reply(request).status == 403);
  }
  CHECK(upstream.counts().asked == 0);
  request.fields = {{"Host", "127.0.0.1:80"}, {"Sec-Fetch-Site", "none"}};  // an address that its user typed
  CHECK(endpoint.reply(request).status == 200);
}

TEST_CASE("a client that has the content gets no body") {
  EndpointFixture f;
  f.publish_text("org/m", "first");
  for (const char* path :
       {"/org/m/resolve/main/a.txt", "/api/models/org/m", "/api/models/org/m/tree/main", "/api/models/org/m/refs"}) {
    CAPTURE(path);
    const HttpReply whole = f.ask(path);
    const std::string etag = field_of(whole, "ETag");
    REQUIRE(!etag.empty());
    const HttpReply reply = f.ask(path, {{"If-None-Match", etag}});
    CHECK(reply.status == 304);
    CHECK(field_of(reply, "ETag") == etag);
    CHECK(f.ask(path, {{"If-None-Match", "\"other\""}}).status == 200);
  }
}

TEST_CASE("a revision leads to the version that hub/ shows for it") {
  EndpointFixture f;
  f.publish_text("org/m", "first", {"prod"});
  f.publish_text("org/m", "second");
  const std::string first = f.commit("org/m@1"), second = f.commit("org/m@2");
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{
           {"main", second}, {"2", second}, {"1", first}, {"prod", first}, {first, first}, {second, second}}) {
    const auto& revision = row.first;
    const auto& commit = row.second;
    CAPTURE(revision);
    CHECK(must(f.json("/api/models/org/m/revision/" + revision).text("sha")) == commit);
    CHECK(f.text("/org/m/resolve/" + revision + "/a.txt") == (commit == first ? "first" : "second"));
  }
  must(f.store->set_tag("org/m", "main", 1));
  CHECK(must(f.json("/api/models/org/m").text("sha")) == first);
  for (const std::string& none : {std::string("0"), std::string("01"), std::string("3"), std::string("none"),
                                  std::string("%20"), std::string(5000, 'a'), std::string(40, 'f')}) {
    const HttpReply reply = f.ask("/api/models/org/m/revision/" + none);
    CHECK(reply.status == 404);
    CHECK(field_of(reply, "X-Error-Code") == "RevisionNotFound");
  }
}

TEST_CASE("a file has the fields by which clients keep it") {
  EndpointFixture f;
  f.publish_text("m", "0123456789");
  const HttpReply head = f.ask("/m/resolve/main/a.txt", {{"Range", "bytes=1-2"}}, HttpRequest::Method::head);
  CHECK(head.status == 200);
  CHECK(std::get<HttpFile>(head.body).length == 10);
  CHECK(field_of(head, "X-Repo-Commit") == f.commit("m"));
  CHECK(field_of(head, "X-Linked-Size") == "10");
  CHECK(field_of(head, "ETag") == "\"84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882\"");
  CHECK(f.text("/m/resolve/main/a.txt", {{"Range", "bytes=2-4"}}) == "234");
  CHECK(f.ask("/m/resolve/main/a.txt", {{"Range", "bytes=10-"}}).status == 416);
  for (const char* path : {"none", "sub", "sub/", "a.txt/x", "sub//b.txt", "A.TXT", ""}) {
    CAPTURE(path);
    const HttpReply reply = f.ask(std::string("/m/resolve/main/") + path);
    CHECK(reply.status == 404);
    CHECK(field_of(reply, "X-Error-Code") == "EntryNotFound");
    CHECK(field_of(reply, "X-Repo-Commit") == f.commit("m"));
  }
}

TEST_CASE("models, data sets and methods are kept apart") {
  EndpointFixture f;
  f.publish_text("m", "text");
  DatasetSpec spec;
  spec.small = {{"a/1.txt", "one"}, {"a/2.txt", "two"}};
  publish_dataset(*f.store, f.dir, "d", spec);
  for (const char* path : {"/api/datasets/m", "/api/models/d", "/datasets/m/resolve/main/a.txt",
                           "/d/resolve/main/a/1.txt", "/api/models/none", "/none/none/resolve/main/x"})
    CHECK(field_of(f.ask(path), "X-Error-Code") == "RepoNotFound");
  CHECK(f.text("/datasets/d/resolve/main/a/2.txt") == "two");
  CHECK(paths_in(f.json("/api/datasets/d/tree/main/a")) == std::vector<std::string>{"a/1.txt", "a/2.txt"});
  CHECK(f.ask("/api/models/m", {}, HttpRequest::Method::post).status == 405);
  CHECK(f.ask("/api/models/m/paths-info/main").status == 405);
  CHECK(f.ask("/").status == 404);
}

TEST_CASE("large and small files of a data set have their digests") {
  EndpointFixture f;
  f.publish_text("d", std::string(kSmallFileMax + 1, 'L'), {}, true);
  const auto digest = [](std::string_view text) { return to_hex(sha256(std::as_bytes(std::span(text)))); };
  const JsonValue rows = f.json("/api/datasets/d/tree/main", {{"recursive", "1"}});
  REQUIRE(paths_in(rows) == std::vector<std::string>{"a.txt", "sub", "sub/b.txt"});
  CHECK(must((*rows.array())[0].find("lfs")->text("oid")) == digest(std::string(kSmallFileMax + 1, 'L')));
  CHECK((*rows.array())[1].find("lfs") == nullptr);
  CHECK(must((*rows.array())[2].find("lfs")->text("oid")) == digest("b"));
  CHECK(f.text("/datasets/d/resolve/main/sub/b.txt") == "b");
}

TEST_CASE("a file stays whole for a client after its version is removed") {
  EndpointFixture f;
  f.publish_text("m", std::string(100'000, 'x'));
  const HttpReply reply = f.ask("/m/resolve/main/a.txt");
  must(f.store->remove_version("m", 1));
  CHECK(field_of(f.ask("/m/resolve/main/a.txt"), "X-Error-Code") == "RepoNotFound");
  must(f.store->gc({}, no_progress()));
  const auto& file = std::get<HttpFile>(reply.body);
  std::string bytes(file.length, '\0');
  must(read_exact(file.fd.get(), file.offset, std::as_writable_bytes(std::span(bytes)), "file"));
  CHECK(bytes == std::string(100'000, 'x'));
}

TEST_CASE("a version that is removed during its answer is not found, and no failure") {
  EndpointFixture f;
  std::atomic<bool> is_over = false;
  std::atomic<int> failures = 0;
  std::thread client([&] {
    while (!is_over)
      for (const char* path : {"/api/models/m", "/m/resolve/main/a.txt"}) {
        const int status = f.ask(path).status;
        if (status != 200 && status != 404) ++failures;
      }
  });
  for (std::uint64_t number = 1; number <= 60; ++number) {
    f.publish_text("m", std::to_string(number));
    must(f.store->remove_version("m", number));
  }
  is_over = true;
  client.join();
  CHECK(failures == 0);
}

TEST_CASE("the name of the own host may have capitals") {
  EndpointFixture f;
  f.publish_text("m", "text");
  for (const char* host : {"localhost", "LocalHost:80"}) CHECK(f.ask("/api/models/m", {{"Host", host}}).status == 200);
  for (const char* host : {"localhost.", "localhosts", "local"})
    CHECK(f.ask("/api/models/m", {{"Host", host}}).status == 403);
}

TEST_CASE("a listing goes on at any entry, and takes no other cursor") {
  EndpointFixture f;
  f.publish_text("m", "text");
  CHECK(paths_in(f.json("/api/models/m/tree/main")) == std::vector<std::string>{"a.txt", "sub"});
  CHECK(paths_in(f.json("/api/models/m/tree/main", {{"recursive", "True"}})) ==
        std::vector<std::string>{"a.txt", "sub", "sub/b.txt"});
  const auto vfs = Vfs::make(*f.store, {});
  Ino root = kRootIno;
  for (const char* name : {"models", "m", "1"}) root = must(vfs->lookup(root, name)).ino;
  ServedListing whole(*vfs, root, "", {.recursive = true});
  for (std::size_t done = 0; done < 3; ++done) {
    ServedListing rest(*vfs, root, "", {.recursive = true});
    must(rest.seek(whole.cursor()));
    std::vector<std::string> paths;
    for (auto next = must(rest.next()); next; next = must(rest.next())) paths.push_back(next->path);
    CHECK(paths.size() == 3 - done);
    CHECK(paths.front() == must(whole.next())->path);
  }
  for (const char* cursor : {"", ":", "x:", "1:", "0.0:", "0:sub", "0.0:none", "0.0:a.txt", "0.0.0:sub/..", "0.0:..",
                             "-1:", "18446744073709551616:", "0.:sub", ".0:sub", "0.0:sub/"}) {
    CAPTURE(cursor);
    ServedListing listing(*vfs, root, "", {.recursive = true});
    CHECK(listing.seek(cursor).error().code == Errc::invalid);
    CHECK(f.ask("/api/models/m/tree/main", {}, HttpRequest::Method::get, {{"cursor", cursor}}).status == 400);
  }
}

}  // namespace
}  // namespace weft::testing
