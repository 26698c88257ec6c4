#include "weft/dataset_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "dataset/dataset_numbers.h"
#include "made_dataset.h"
#include "testing.h"

namespace weft::testing {
namespace {

using Names = std::vector<std::string>;
using Contents = std::map<std::string, std::string>;  // path to content; "/" for a directory
using Kind = DatasetNode::Kind;

// A data set in memory. Its tables match the manifest, and are checked each time they are requested.
struct Held {
  explicit Held(MadeDataset dataset) : made(std::move(dataset)) {
    tree = must(VersionTree::build(std::make_shared<const Manifest>(made.manifest)));
    dataset_tree = std::make_unique<DatasetTree>(tree, [this](std::uint32_t file) {
      ++asked;
      return check_table(made.manifest, file, as_bytes(made.contents[file]), nullptr);
    });
  }
  explicit Held(const DatasetSpec& spec) : Held(make_dataset(spec)) {}

  DatasetEntry at(std::uint64_t root, const std::string& path) const {
    DatasetEntry entry{root};
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      entry = must(dataset_tree->lookup(entry.number, name));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    return entry;
  }
  Errc failure(std::uint64_t root, const std::string& path, const std::string& name) const {
    const auto found = dataset_tree->lookup(at(root, path).number, name);
    REQUIRE_FALSE(found.ok());
    return found.error().code;
  }
  std::string read(const DatasetEntry& entry) const {
    if (entry.node.kind == Kind::made) {
      const MadeFile file = must(dataset_tree->made(entry.number));
      std::string text(file.size, '\0');
      const auto out = std::as_writable_bytes(std::span(text));
      for (std::size_t from = 0; from < out.size(); from += 13)
        file.read(from, out.subspan(from, std::min<std::size_t>(13, out.size() - from)));
      return text;
    }
    return made.contents[entry.node.file].substr(entry.node.range.offset, entry.node.range.length);
  }
  Names names(std::uint64_t root, const std::string& path, std::size_t step = 3) const {
    Names names;
    for (const DatasetEntry& entry : list(at(root, path).number, step)) names.push_back(entry.name);
    return names;
  }
  std::vector<DatasetEntry> list(std::uint64_t dir, std::size_t step) const {
    std::vector<DatasetEntry> all;
    for (std::uint64_t from = 0;;) {
      DatasetPage page = must(dataset_tree->list(dir, from, step));
      for (DatasetEntry& entry : page.entries) {
        CHECK(entry.behind != 0);
        from = entry.behind;
        all.push_back(std::move(entry));
      }
      if (page.last) return all;
      REQUIRE_FALSE(page.entries.empty());
    }
  }

  // Returns all entries that listings show, and checks lookup, parent and node of each.
  Contents walk(std::uint64_t root, std::size_t step) const {
    Contents out;
    std::set<std::uint64_t> numbers{root};
    walk(root, "", step, out, numbers);
    return out;
  }
  void walk(std::uint64_t dir, const std::string& path, std::size_t step, Contents& out,
            std::set<std::uint64_t>& numbers) const {
    for (const DatasetEntry& entry : list(dir, step)) {
      const std::string inner = path + entry.name;
      CAPTURE(inner);
      CHECK(entry.number < dataset_tree->size());
      CHECK(numbers.insert(entry.number).second);
      CHECK(must(dataset_tree->lookup(dir, entry.name)).number == entry.number);
      const DatasetNode node = must(dataset_tree->node(entry.number));
      CHECK(node.kind == entry.node.kind);
      CHECK(node.file == entry.node.file);
      CHECK(node.range == entry.node.range);
      out[inner] = node.kind == Kind::dir ? "/" : read(entry);
      if (node.kind != Kind::dir) {
        CHECK(dataset_tree->lookup(entry.number, "x").error().code == Errc::not_dir);
        CHECK(dataset_tree->list(entry.number, 0, 1).error().code == Errc::not_dir);
        continue;
      }
      CHECK(must(dataset_tree->parent(entry.number)) == dir);
      walk(entry.number, inner + "/", step, out, numbers);
    }
  }

  MadeDataset made;
  std::shared_ptr<const VersionTree> tree;
  std::unique_ptr<DatasetTree> dataset_tree;
  mutable int asked = 0;
};

// Adds the directories of the files.
Contents with_directories(const Contents& files) {
  Contents out = files;
  for (const auto& [path, content] : files)
    for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1))
      out[path.substr(0, slash)] = "/";
  return out;
}

bool is_beside(const Contents& files, const std::string& path) {
  return std::ranges::none_of(files, [&](const auto& file) {
    return file.first == path || file.first.starts_with(path + "/") || path.starts_with(file.first + "/");
  });
}

DatasetSpec random_spec(std::mt19937_64& random, Contents& files) {
  DatasetSpec spec;
  spec.bundle_bytes = 1 + random() % 40;
  for (std::size_t i = 0, count = random() % 40; i < count; ++i) {
    std::string path;
    for (std::size_t depth = random() % 4; depth > 0; --depth) path += "d" + std::to_string(random() % 3) + "/";
    path += "f" + std::to_string(random() % 40);
    if (!is_beside(files, path)) continue;
    files[path] = std::string(random() % 9, static_cast<char>('a' + i % 26));
    const std::size_t what = random() % 4;
    if (what < 2)
      spec.small[path] = files[path];
    else if (what == 2)
      spec.large[path] = files[path];
    else
      spec.containers[path] = {files[path], {}};
  }
  return spec;
}

std::vector<std::uint64_t> numbers_in(const std::string& npy) {
  const std::size_t header = npy.find('\n') + 1;
  CHECK(header % 64 == 0);
  std::vector<std::uint64_t> numbers((npy.size() - header) / 8);
  std::memcpy(numbers.data(), npy.data() + header, numbers.size() * 8);
  CHECK(npy.find("'descr': '<u8', 'fortran_order': False, 'shape': (" + std::to_string(numbers.size()) + ",)") !=
        npy.npos);
  return numbers;
}

DatasetSpec tars() {
  DatasetSpec spec;
  spec.containers["a/t.tar"] = {
      "0123456789", {{"x/1.jpg", 2, 3}, {"x/1.txt", 5, 1}, {"x/y/2", 7, 0}, {"z", 8, 2}}, true, {"dev"}};
  spec.containers["a/b/u.mdb"] = {"abcdef", {{"k1", 0, 2}, {"k2", 2, 3}}, false, {}, "lmdb"};
  spec.containers["a.tar"] = {"xyz", {{"m", 1, 1}}};
  spec.small = {{"s/1", "one"}, {"s/2", "two"}, {"0", ""}};
  spec.large = {{"none.tar", "not understood"}};
  return spec;
}

}  // namespace

TEST_CASE("datasets/ shows the files that were published, large and small ones by name") {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 300; ++round) {
    Contents files;
    const Held held(random_spec(random, files));
    CHECK(held.walk(kPublishedRoot, 1 + random() % 5) == with_directories(files));
    for (const auto& [path, content] : with_directories(files)) {
      if (content != "/") continue;
      const Names names = held.names(kPublishedRoot, path);
      CHECK(std::ranges::is_sorted(names));
    }
  }
}

TEST_CASE("a directory that has large and small files is one directory") {
  DatasetSpec spec;
  spec.large = {{"d/large", "L"}, {"d/e/large", "M"}};
  spec.small = {{"d/small", "s"}, {"d/e/small", "t"}, {"d/f/small", "u"}};
  const Held held(spec);
  CHECK(held.names(kPublishedRoot, "d", 1) == Names{"e", "f", "large", "small"});
  CHECK(held.names(kPublishedRoot, "d/e", 1) == Names{"large", "small"});
  CHECK(must(held.dataset_tree->parent(held.at(kPublishedRoot, "d/f").number)) == held.at(kPublishedRoot, "d").number);
  CHECK(held.failure(kPublishedRoot, "d", "x") == Errc::not_found);
  CHECK(must(held.dataset_tree->list(kPublishedRoot, UINT64_MAX, 9)).entries.empty());
}

TEST_CASE("entries above the tables are answered without a table") {
  const Held held(tars());
  must(held.dataset_tree->node(kPublishedRoot));
  must(held.dataset_tree->node(kRecordsRoot));
  must(held.dataset_tree->list(kRecordsRoot, 0, 9));
  const std::uint64_t container = held.at(kRecordsRoot, "a/t.tar").number;
  must(held.dataset_tree->node(container));
  must(held.dataset_tree->parent(container));
  CHECK(held.asked == 0);
  must(held.dataset_tree->lookup(container, "keys.txt"));
  CHECK(held.asked == 1);
}

TEST_CASE("records/ shows the containers that have a table, and what is in each") {
  const Held held(tars());
  CHECK(held.names(kRecordsRoot, "") == Names{"a.tar", "a", "@files"});
  CHECK(held.names(kRecordsRoot, "a") == Names{"b", "t.tar"});
  CHECK(held.names(kRecordsRoot, "a/t.tar") == Names{"files", "index.npy", "keys.txt", "order", "part", "skipped.txt"});
  CHECK(held.names(kRecordsRoot, "a/b/u.mdb") == Names{"index.npy", "keys.txt", "order", "part"});
  CHECK(held.names(kRecordsRoot, "@files") == Names{"keys.txt", "order", "part"});
  for (const std::size_t step : {1, 2, 100}) {
    Contents all = held.walk(kRecordsRoot, step);
    CHECK(all["a/t.tar/files/x/1.jpg"] == "234");
    CHECK(all["a/t.tar/files/x/1.txt"] == "5");
    CHECK(all["a/t.tar/files/x/y/2"].empty());
    CHECK(all["a/t.tar/files/z"] == "89");
    CHECK(all["a/t.tar/keys.txt"] == "x/1.jpg\nx/1.txt\nx/y/2\nz\n");
    CHECK(all["a/t.tar/skipped.txt"] == "dev\ta device\n");
    CHECK(all["a/b/u.mdb/keys.txt"] == "k1\nk2\n");
    CHECK(all["@files/keys.txt"] == "0\ns/1\ns/2\n");
    CHECK(all["a/b/u.mdb/index.npy"].size() == all["a/b/u.mdb/index.npy"].find('\n') + 1 + 2 * 16);
    CHECK(all["a/b"] == "/");
    CHECK_FALSE(all.contains("none.tar"));
  }
  for (const char* name : {"none.tar", "s", "0", "x", "", "a/b"})
    CHECK(held.failure(kRecordsRoot, "", name) == Errc::not_found);
  CHECK(held.failure(kRecordsRoot, "a/b/u.mdb", "files") == Errc::not_found);
  CHECK(held.failure(kRecordsRoot, "a/b/u.mdb", "skipped.txt") == Errc::not_found);
  CHECK(held.failure(kRecordsRoot, "@files", "index.npy") == Errc::not_found);
}

TEST_CASE("without small files there is no @files, and what is published by its name comes first") {
  DatasetSpec spec;
  spec.large = {{"x", "x"}};
  CHECK(Held(spec).names(kRecordsRoot, "").empty());
  spec.containers["@files"] = {"abc", {{"m", 1, 1}}};
  spec.small = {{"s", "t"}};
  const Held held(spec);
  CHECK(held.names(kRecordsRoot, "", 1) == Names{"@files"});
  CHECK(held.names(kRecordsRoot, "@files") == Names{"files", "index.npy", "keys.txt", "order", "part"});
}

TEST_CASE("part/ and order/ list nothing, and have the shares that are asked for by a plain name") {
  const Held held(tars());
  for (const std::string container : {"a/t.tar", "a/b/u.mdb", "@files"}) {
    const std::string part = container + "/part", order = container + "/order";
    for (const std::string& dir : {part, order, part + "/4", part + "/4096", order + "/0", order + "/65535/7"}) {
      CAPTURE(dir);
      CHECK(held.at(kRecordsRoot, dir).node.kind == Kind::dir);
      CHECK(held.names(kRecordsRoot, dir).empty());
    }
    for (const std::string name : {"0", "4097", "04", "x", "", "-1", "+1", "1 ", "18446744073709551617"})
      CHECK(held.failure(kRecordsRoot, part, name) == Errc::not_found);
    for (const std::string name : {"65536", "00", "x", "", "-0"})
      CHECK(held.failure(kRecordsRoot, order, name) == Errc::not_found);
    for (const std::string name : {"4.npy", "0", "00.npy", ".npy", "0.npy.npy", "-1.npy", "npy"}) {
      CHECK(held.failure(kRecordsRoot, part + "/4", name) == Errc::not_found);
      CHECK(held.failure(kRecordsRoot, order + "/3/4", name) == Errc::not_found);
    }
    CHECK(must(held.dataset_tree->parent(held.at(kRecordsRoot, order + "/3/4").number)) ==
          held.at(kRecordsRoot, order + "/3").number);
    CHECK(must(held.dataset_tree->parent(held.at(kRecordsRoot, order + "/3").number)) ==
          held.at(kRecordsRoot, order).number);
    CHECK(must(held.dataset_tree->parent(held.at(kRecordsRoot, part + "/4").number)) ==
          held.at(kRecordsRoot, part).number);
    CHECK(must(held.dataset_tree->parent(held.at(kRecordsRoot, part).number)) ==
          held.at(kRecordsRoot, container).number);
  }
}

TEST_CASE("shares are .npy files of row numbers, and those of all ranks are all rows") {
  DatasetSpec spec;
  MadeContainer container{std::string(100, 'x'), {}, false};
  for (std::uint64_t i = 0; i < 50; ++i) container.records.push_back({"r" + std::to_string(i), 2 * i, 2});
  spec.containers["c"] = container;
  const Held held(spec);
  std::vector<std::uint64_t> all(50);
  for (std::uint64_t i = 0; i < all.size(); ++i) all[i] = i;
  std::vector<std::uint64_t> parts, orders;
  for (std::uint64_t r = 0; r < 3; ++r) {
    const std::string name = std::to_string(r) + ".npy";
    std::ranges::copy(numbers_in(held.read(held.at(kRecordsRoot, "c/part/3/" + name))), std::back_inserter(parts));
    std::ranges::copy(numbers_in(held.read(held.at(kRecordsRoot, "c/order/9/3/" + name))), std::back_inserter(orders));
  }
  CHECK(parts == all);
  std::ranges::sort(orders);
  CHECK(orders == all);
  CHECK(numbers_in(held.read(held.at(kRecordsRoot, "c/part/4096/4095.npy"))).empty());
}

TEST_CASE("the rows of a published file are those of its table") {
  const Held held(tars());
  const auto rows_at = [&](const char* path) {
    return must(held.dataset_tree->rows(held.at(kPublishedRoot, path).node.file));
  };
  const auto rows = rows_at("a/b/u.mdb");
  REQUIRE(rows);
  CHECK(rows->count == 2);
  CHECK(rows->row(1) == Range{2, 3});
  CHECK_FALSE(rows_at("none.tar"));
}

TEST_CASE("a table that does not fit the manifest is refused") {
  const MadeDataset good = make_dataset(tars());
  const auto small = [&](const MadeDataset& made) {
    const auto listed = Held(made).dataset_tree->list(kPublishedRoot, 0, 9);
    return listed.ok() ? Errc::internal : listed.error().code;
  };
  REQUIRE(Held(good).names(kPublishedRoot, "").size() == 5);
  const auto file_of = [](MadeDataset& made, FileRole role) -> File& {
    return *std::ranges::find(made.manifest.files, role, &File::role);
  };
  MadeDataset shorter = good;
  file_of(shorter, FileRole::bundle).size -= 1;
  CHECK(small(shorter) == Errc::corrupt);
  MadeDataset other_size = good;
  file_of(other_size, FileRole::file_table).size += 1;
  CHECK(small(other_size) == Errc::corrupt);
  for (const char* path : {"s", "s/1", "s/1/x", "0", "0/x/y"}) {
    CAPTURE(path);
    DatasetSpec spec = tars();
    spec.large = {{path, "L"}};
    CHECK(small(make_dataset(spec)) == Errc::corrupt);
  }
  DatasetSpec cut;
  cut.small = {{"a", "1234"}, {"b", "5678"}};
  cut.bundle_bytes = 4;
  MadeDataset across = make_dataset(cut);
  across.manifest.files[0].size = 3;
  across.manifest.files[1].size = 5;
  CHECK(small(across) == Errc::corrupt);
  MadeDataset container = good;
  std::ranges::find(container.manifest.files, "a.tar", &File::path)->size += 1;
  const Held held(container);
  CHECK(held.dataset_tree->list(held.at(kRecordsRoot, "a.tar").number, 0, 9).error().code == Errc::corrupt);
}

TEST_CASE("damaged tables and any number are answered, or refused") {
  std::mt19937_64 random(test_seed());
  const MadeDataset good = make_dataset(tars());
  int walked = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    MadeDataset made = good;
    const std::size_t file = random() % made.contents.size();
    if (made.manifest.files[file].role != FileRole::published)
      for (std::size_t n = random() % 3; n > 0; --n)
        made.contents[file][random() % made.contents[file].size()] = static_cast<char>(random());
    const Held held(std::move(made));
    for (const std::uint64_t root : {std::uint64_t{kPublishedRoot}, kRecordsRoot}) {
      try {
        held.walk(root, 100);
        ++walked;
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t number = random() >> (random() % 64);
      const auto node = held.dataset_tree->node(number);
      static_cast<void>(held.dataset_tree->parent(number));
      static_cast<void>(held.dataset_tree->lookup(number, "x"));
      static_cast<void>(held.dataset_tree->list(number, random(), 9));
      if (node.ok() && node->kind == Kind::made) static_cast<void>(held.dataset_tree->made(number));
    }
  }
  CHECK(walked > 1000);
  CHECK(refused > 100);
}

}  // namespace weft::testing
