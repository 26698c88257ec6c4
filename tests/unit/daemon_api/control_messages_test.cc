#include "daemon_api/control_messages.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "base/limits.h"

namespace weft::testing {
namespace {

JsonValue parsed(const std::string& text) {
  auto value = JsonValue::parse(text);
  REQUIRE_MESSAGE(value.ok(), text);
  return std::move(value).value();
}

template <class M>
M again(const M& message) {
  auto got = decode_fields<M>(parsed(encode_fields(message)));
  REQUIRE_MESSAGE(got.ok(), (got.ok() ? "" : got.error().message));
  return std::move(got).value();
}

template <class M>
std::string refusal(const std::string& text) {
  const auto got = decode_fields<M>(parsed(text));
  REQUIRE(!got.ok());
  CHECK(got.error().code == Errc::invalid);
  return got.error().message;
}

}  // namespace

TEST_CASE("an undelete and its outcome survive encoding") {
  CHECK(again(UndeleteRequest{{"m@1", "n@2"}}).specs == std::vector<std::string>{"m@1", "n@2"});
  const UndeletedVersion got = again(UndeletedVersion{"m", 1, {"a"}, {{"b", 2}}});
  CHECK(got.model == "m");
  CHECK(got.number == 1);
  CHECK(got.tags == std::vector<std::string>{"a"});
  REQUIRE(got.moved.size() == 1);
  CHECK(got.moved[0].name == "b");
  CHECK(got.moved[0].number == 2);
  CHECK(again(RemoveReport{5}).kept_until_ns == 5);
}

TEST_CASE("an ImportRequest survives encoding, except its paths") {
  ImportOptions options;
  options.paths = {"/secret"};
  options.name = "org/m";
  options.inherit = "base@1";
  options.add = true;
  options.take = Take::share;
  options.dataset = true;
  options.parents = {"a", "b@2"};
  options.find_parent = 0.25;
  options.tags = {"x"};
  options.message = "why \"so\"";
  options.default_message = "of a hub";
  options.source.endpoint = "https://hub.example";
  options.source.commit = std::string(40, 'e');
  options.source.listed_ns = 5;
  options.source.urls = {"https://a.example/f"};
  options.metrics = {{"loss", "1"}, {"loss", "2"}};
  const ImportRequest got = again(ImportRequest{options, 3});
  CHECK(got.files == 3);
  CHECK(got.options.paths.empty());
  CHECK(got.options.name == options.name);
  CHECK(got.options.inherit == options.inherit);
  CHECK(got.options.add);
  CHECK(got.options.take == Take::share);
  CHECK(got.options.dataset);
  CHECK(got.options.durability == options.durability);
  CHECK(got.options.parents == options.parents);
  CHECK(got.options.find_parent == options.find_parent);
  CHECK(got.options.tags == options.tags);
  CHECK(got.options.message == options.message);
  CHECK(got.options.default_message == options.default_message);
  CHECK(got.options.source == options.source);
  CHECK(got.options.metrics == options.metrics);
  options.find_parent.reset();
  CHECK(!again(ImportRequest{options, 1}).options.find_parent);
}

TEST_CASE("an import of no files, of too many, or with half a metric is refused") {
  const std::string unknown =
      R"({"files":1,"name":"m","inherit":"","add":false,"dataset":false,"take":0,"durability":"disk"})";
  CHECK(refusal<ImportRequest>(unknown) == "\"durability\": expected memory, local or origin, got disk");
  const std::string rest =
      R"(,"name":"m","inherit":"","add":false,"dataset":false,"take":0,"durability":"local","keep":0,"parents":[],"tags":[],"default_message":"","source":{"endpoint":"","repository":"","revision":"","commit":"","access":"","listed_ns":0,"urls":[],"left_out":0},"message":""})";
  CHECK(refusal<ImportRequest>(R"({"metrics":[],"files":0)" + rest) == "\"files\": expected at least 1, got 0");
  CHECK(refusal<ImportRequest>(R"({"metrics":[],"files":18446744073709551615)" + rest).starts_with("\"files\": "));
  CHECK(refusal<ImportRequest>(R"({"files":1,"metrics":[["x"]])" + rest) == "\"value\": expected a text, got nothing");
  CHECK(refusal<ImportRequest>(R"({"files":1,"metrics":["x"])" + rest).starts_with("\"key\": "));
  CHECK(refusal<ImportRequest>(R"({"files":1,"metrics":[["x","1","2"]])" + rest).starts_with("expected an array of 2"));
}

TEST_CASE("a claim has a key of digits") {
  const std::string key(limits::kClaimDigits, 'a');
  CHECK(again(ClaimRequest{key}).key == key);
  CHECK(again(ClaimEvent{.held = true}).held);
  const ClaimEvent next{.holder = "name", .node = "id", .since_ns = 7};
  CHECK(again(next) == next);
  for (const std::string& bad : {std::string(), key + "a", std::string(limits::kClaimDigits, '/')}) {
    CHECK(refusal<ClaimRequest>(R"({"key":")" + bad + "\"}").starts_with("\"key\": "));
    CHECK(refusal<AdoptRequest>(R"({"key":")" + bad + R"(","spec":"m@1"})").starts_with("\"key\": "));
  }
  CHECK(again(AdoptRequest{key, "m@1"}).spec == "m@1");
  CHECK(again(AdoptReport{7}).bytes == 7);
}

TEST_CASE("a question about a pull is within bounds") {
  const PulledAsk ask{std::string(limits::kClaimDigits, 'a'), "sub/m.bin", Digest{}, 9, 8, 1};
  CHECK(again(PulledRequest{"node", ask}).node == "node");
  CHECK(again(PulledRequest{"node", ask}).ask == ask);
  PulledAsk bad = ask;
  bad.offset = 9;
  CHECK(refusal<PulledRequest>(encode_fields(PulledRequest{"node", bad})).find("offset 9") != std::string::npos);
  bad = ask;
  bad.length = kPulledBytesMax + 1;
  CHECK_FALSE(refusal<PulledRequest>(encode_fields(PulledRequest{"node", bad})).empty());
  CHECK(again(PulledAnswer{3, 4}).bytes == 4);
  CHECK(refusal<PulledAnswer>(R"({"pieces":1025,"bytes":0})").starts_with("\"pieces\": "));
  CHECK(refusal<PulledAnswer>(R"({"pieces":1,"bytes":4194305})").starts_with("\"bytes\": "));
}

TEST_CASE("the figures of a mount survive encoding, and are within bounds") {
  MountFigures figures{"id", "/mnt", true, 3, 1, {{"read", 5, {1, 2, 3, 4, 5, 6, 7}}, {"open", 6, {}}}};
  CHECK(again(figures) == figures);
  figures.requests.resize(limits::kMountKindsMax + 1);
  CHECK(refusal<MountFigures>(encode_fields(figures)).starts_with("\"requests\": expected at most 16 kinds"));
  figures.requests = {{std::string(limits::kMountKindMax + 1, 'k'), 0, {}}};
  CHECK(refusal<MountFigures>(encode_fields(figures)).starts_with("\"kind\": "));
  figures.requests.clear();
  figures.directory = std::string(limits::kMountDirectoryMax + 1, '/');
  CHECK(refusal<MountFigures>(encode_fields(figures)).starts_with("\"directory\": "));
}

TEST_CASE("a change of the key reports keys and nodes") {
  CHECK(again(RotateKeyRequest{true}).finish);
  const RotateKeyReport report = again(RotateKeyReport{"new", "old", {"a", "b"}, {"c"}, true});
  CHECK(report.key == "new");
  CHECK(report.before == "old");
  CHECK(report.nodes == std::vector<std::string>{"a", "b"});
  CHECK(report.away == std::vector<std::string>{"c"});
  CHECK(report.forgotten);
}

TEST_CASE("an import of a bundle asks for files by their names, and reports what it did") {
  BundleImportRequest request;
  request.options.specs = {"bert@2"};
  request.options.move_tags = true;
  request.where = "/backup/monday.weft";
  request.directory = true;
  const BundleImportRequest got = again(request);
  CHECK(got.options.specs == request.options.specs);
  CHECK(got.options.move_tags);
  CHECK_FALSE(got.options.dry_run);
  CHECK(got.where == request.where);
  CHECK(got.directory);
  CHECK(again(BundleEvent{"blobs/1"}).open == "blobs/1");
  CHECK_FALSE(again(BundleEvent{}).open);
  const BundleImportReport report = again(BundleImportReport{"id", 5, 3, 2, 4, 6, 1, {"a line"}});
  CHECK(report.uuid == "id");
  CHECK(report.versions == 5);
  CHECK(report.imported == 3);
  CHECK(report.known == 2);
  CHECK(report.tags == 4);
  CHECK(report.bytes == 6);
  CHECK(report.removed == 1);
  CHECK(report.left == std::vector<std::string>{"a line"});
}

TEST_CASE("an event of an import is a question, a removed version or progress") {
  CHECK(again(ImportEvent{.files = 7}).files == 7U);
  CHECK(again(ImportEvent{.open = 0}).open == 0U);
  CHECK(again(ImportEvent{.removed = VersionName{"m", 3}}).removed == VersionName{"m", 3});
  const auto progress = decode_fields<ImportEvent>(parsed(encode_fields(ProgressEvent{"reading", 2, 1, ""})));
  REQUIRE(progress.ok());
  CHECK_FALSE((progress->files || progress->open || progress->removed));
}

TEST_CASE("a report of an import holds what is printed") {
  ImportReport report;
  report.files = 1;
  report.tensors = 2;
  report.logical_bytes = 3;
  report.outcome.made = true;
  report.outcome.new_bytes = 4;
  report.outcome.shared_bytes = 5;
  VersionRow& row = report.outcome.version;
  row.model_name = "m";
  row.number = 6;
  row.manifest.bytes[31] = 7;
  row.tensors = 8;
  row.elsewhere = {"org/gone"};
  row.parents = {{"p", 9, false, 10, 11}};
  report.not_kept = {"message", "metric loss"};
  report.remarks = {"model.safetensors.index.json: a remark"};
  report.removed = {{"m", 1}, {"m", 2}};
  report.not_removed = "weftd: user 7 may not remove versions here";
  const ImportReport got = again(report);
  CHECK(got.not_kept == report.not_kept);
  CHECK(got.remarks == report.remarks);
  CHECK(got.removed == report.removed);
  CHECK(got.outcome.version.manifest == row.manifest);
  CHECK(got.outcome.version.tensors == 8);
  CHECK(got.outcome.version.elsewhere == row.elsewhere);
  REQUIRE(got.outcome.version.parents.size() == 1);
  CHECK(got.outcome.version.parents[0].same_bytes == 11);
  CHECK(!got.outcome.version.parents[0].declared);
  CHECK(encode_fields(got) == encode_fields(report));
}

TEST_CASE("files travel in messages of bounded size, and no more of them than were announced") {
  std::vector<SourceFile> files;
  for (int i = 0; i < 20'000; ++i) files.push_back({fmt::format("f{}", i), "/models/of/somebody", 7});
  std::vector<SourceFile> got;
  while (got.size() < files.size()) {
    const std::string body = encode_files(files, got.size());
    CHECK(body.size() < limits::kControlMessageMax);
    REQUIRE(decode_files(parsed(body), files.size(), got).ok());
  }
  CHECK(got.back().path == "f19999");
  CHECK(got.back().where == "/models/of/somebody");
  CHECK(got.back().size == 7);
  SourceFile empty{"runs", "/models/runs"};
  empty.directory = true;
  std::vector<SourceFile> one;
  REQUIRE(decode_files(parsed(encode_files(std::span(&empty, 1), 0)), 1, one).ok());
  CHECK((one[0].directory && one[0].path == "runs"));
  CHECK_FALSE(got.back().directory);
  one.clear();
  SourceFile stored{.path = "b.bin", .where = "a.bin of m@1", .size = 7, .stored = "m@1", .stored_path = "a.bin"};
  REQUIRE(decode_files(parsed(encode_files(std::span(&stored, 1), 0)), 1, one).ok());
  CHECK((one[0].stored == "m@1" && one[0].stored_path == "a.bin" && one[0].size == 7));
  CHECK_FALSE(one[0].expected);
  one.clear();
  SourceFile arriving{.path = "c.bin", .where = "/pulls/c.bin", .size = 7, .expected = Digest{}};
  REQUIRE(decode_files(parsed(encode_files(std::span(&arriving, 1), 0)), 1, one).ok());
  CHECK(one[0].expected == Digest{});
  one.clear();
  CHECK(decode_files(parsed(R"({"files":[["a","/a",1],["b","/b",1]]})"), 1, one).error().code == Errc::invalid);
  CHECK(decode_files(parsed(R"({"files":[]})"), 1, one).error().code == Errc::invalid);
  CHECK(decode_files(parsed(R"({"files":[["a","/a"]]})"), 1, one).error().code == Errc::invalid);
  const std::string far(2 * limits::kPathMax + 1, 'x');
  CHECK(decode_files(parsed(R"({"files":[["a",")" + far + R"(",1]]})"), 1, one).error().code == Errc::invalid);
}

TEST_CASE("a failure to open a file keeps its kind") {
  const OpenFailure got = again(OpenFailure{{Errc::permission, "a: not yours"}});
  CHECK(got.error.code == Errc::permission);
  CHECK(got.error.message == "a: not yours");
  CHECK(decode_fields<OpenFailure>(parsed(R"({"code":"ice","message":""})"))->error.code == Errc::io);
}

TEST_CASE("a pattern of layers, and a blob to repair, are bounded") {
  const std::string pattern(limits::kTensorNameMax + 1, '*');
  CHECK(refusal<PrefetchRequest>(R"({"spec":"m","layers":")" + pattern + "\"}") ==
        "\"layers\": expected at most 4096 bytes, got 4097");
  CHECK(refusal<RepairRequest>(R"({"length":0,"root":")" + std::string(64, '0') + R"(","offset":0})") ==
        "\"length\": expected at least 1, got 0");
  CHECK(refusal<RepairRequest>(R"({"length":1,"root":"zz","offset":0})") ==
        "\"root\": expected 64 hexadecimal digits, got zz");
}

}  // namespace weft::testing
