#include "vfs/datasets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "made_dataset.h"
#include "reading/open_file.h"
#include "testing.h"

namespace weft::testing {
namespace {

using Names = std::vector<std::string>;
using Contents = std::map<std::string, std::string>;  // path to content; "/" for a directory

constexpr Ino kBase = 5000;  // the first number of the version

// A data set in memory, with the published files. Its tables match the manifest, and are checked each time they are
// requested.
struct Held final : VersionFiles {
  explicit Held(MadeDataset dataset) : made(std::move(dataset)) {
    auto made_version = std::make_shared<TreeVersion>();
    made_version->row.id = 1;
    made_version->local.ino_base = kBase;
    made_version->tree = must(VersionTree::build(std::make_shared<const Manifest>(made.manifest)));
    made_version->dataset.emplace(
        TreeVersion::Dataset{{made.manifest, made_version->tree->size()}, [this](std::uint32_t file) {
                               ++asked;
                               return check_table(made.manifest, file, as_bytes(made.contents[file]), nullptr);
                             }});
    version = made_version;
  }
  explicit Held(const DatasetSpec& spec) : Held(make_dataset(spec)) {}

  Result<TreeVersionPointer> load(VersionId, Ino) override { return version; }
  Result<std::vector<Attr>> attrs_of(const TreeVersionPointer&, std::span<const std::uint32_t> nodes) override {
    std::vector<Attr> attrs;
    for (const std::uint32_t node : nodes) {
      const File& file = made.manifest.files[version->tree->node(node).file];
      attrs.push_back(text_attr(kBase + node, 0, file.size));
    }
    return attrs;
  }
  Result<Ino> name_dir(const TreeVersion&, InoKind tree) override { return ino_of(tree, 17); }
  Result<std::shared_ptr<OpenFile>> open_file(const TreeVersionPointer&, std::uint32_t file) override {
    return open_text(made.contents[file]);
  }
  Result<Attr> attr(const MountInode& inode) override {
    const auto node = static_cast<std::uint32_t>(inode.ino - kBase);
    return must(attrs_of(version, std::span(&node, 1))).front();
  }
  Result<std::shared_ptr<OpenFile>> open(const MountInode& inode) override {
    return open_file(version, version->tree->node(static_cast<std::uint32_t>(inode.ino - kBase)).file);
  }

  static MountInode inode(Ino ino) {
    MountInode out{ino};
    out.row.version = 1;
    return out;
  }
  // Calls `operation` on the subtree that serves an inode.
  template <class T, class... Args>
  Result<T> ask(Ino ino, Result<T> (Subtree::*operation)(const MountInode&, Args...), Args... args) {
    Subtree* const owner = datasets.owner_of(*version, ino);
    return owner == nullptr ? Result<T>(no_inode(ino)) : (owner->*operation)(inode(ino), args...);
  }
  Result<Attr> attr_of(Ino ino) { return ask(ino, &Subtree::attr); }
  Result<Ino> parent_of(Ino ino) { return ask(ino, &Subtree::parent); }
  Result<Attr> find(Ino dir, std::string_view name) { return ask(dir, &Subtree::lookup, name); }
  Result<DirPage> page(Ino dir, ListPlace from) { return ask(dir, &Subtree::list, from); }

  Attr at(std::uint64_t root, const std::string& path) {
    Attr attr = must(attr_of(kBase + root));
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      attr = must(find(attr.ino, name));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    return attr;
  }
  Errc failure(std::uint64_t root, const std::string& path, const std::string& name) {
    const auto found = find(at(root, path).ino, name);
    REQUIRE_FALSE(found.ok());
    return found.error().code;
  }
  std::string read(const Attr& attr) {
    const auto file = must(ask(attr.ino, &Subtree::open));
    CHECK(file->size() == attr.size);
    std::string text(attr.size, '\0');
    const auto out = std::as_writable_bytes(std::span(text));
    for (std::size_t from = 0; from < out.size(); from += 13) {
      const auto part = out.subspan(from, std::min<std::size_t>(13, out.size() - from));
      CHECK(must(file->read(from, part)) == part.size());
    }
    return text;
  }
  Names names(std::uint64_t root, const std::string& path) {
    Names names;
    for (const DirEntry& entry : entries_of(at(root, path).ino)) names.push_back(entry.name);
    return names;
  }
  // Returns all entries of a directory, and checks that a listing continues after each.
  std::vector<DirEntry> entries_of(Ino dir) {
    std::vector<DirEntry> all;
    for (ListPlace from = 0;;) {
      DirPage page = must(this->page(dir, from));
      REQUIRE((page.last || !page.entries.empty()));
      for (DirEntry& entry : page.entries) {
        CHECK(entry.place >= kFirstPlace);
        CHECK(entry.attr_known);
        all.push_back(std::move(entry));
      }
      if (page.last) break;
      from = all.back().place;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 50); ++i) {
      const DirPage page = must(this->page(dir, all[i].place));
      REQUIRE(page.entries.empty() == (i + 1 == all.size()));
      if (i + 1 < all.size()) CHECK(page.entries.front().name == all[i + 1].name);
    }
    return all;
  }

  // Returns all entries that listings show, and checks the attributes and the parent of each.
  Contents walk(std::uint64_t root) {
    Contents out;
    std::set<Ino> inos{kBase + root};
    walk(kBase + root, "", out, inos);
    return out;
  }
  void walk(Ino dir, const std::string& path, Contents& out, std::set<Ino>& inos) {
    for (const DirEntry& entry : entries_of(dir)) {
      const std::string inner = path + entry.name;
      const Ino ino = entry.attr.ino;
      CAPTURE(inner);
      CHECK(ino - kBase < version->dataset->numbers.end());
      CHECK(inos.insert(ino).second);
      CHECK(must(find(dir, entry.name)).ino == ino);
      const Attr attr = must(attr_of(ino));
      CHECK(attr.ino == ino);
      CHECK(attr.type == entry.attr.type);
      CHECK(attr.size == entry.attr.size);
      CHECK(attr.blocks == entry.attr.blocks);
      const bool is_dir = attr.type == FileType::directory;
      out[inner] = is_dir ? "/" : read(attr);
      if (!is_dir) {
        CHECK(find(ino, "x").error().code == Errc::not_dir);
        CHECK(page(ino, 0).error().code == Errc::not_dir);
        continue;
      }
      CHECK(must(parent_of(ino)) == dir);
      walk(ino, inner + "/", out, inos);
    }
  }

  MadeDataset made;
  TreeVersionPointer version;
  Datasets datasets{*this};
  int asked = 0;
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
  if (!numbers.empty()) std::memcpy(numbers.data(), npy.data() + header, numbers.size() * 8);
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
    Held held(random_spec(random, files));
    CHECK(held.walk(kPublishedRoot) == with_directories(files));
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
  Held held(spec);
  CHECK(held.names(kPublishedRoot, "d") == Names{"e", "f", "large", "small"});
  CHECK(held.names(kPublishedRoot, "d/e") == Names{"large", "small"});
  CHECK(must(held.parent_of(held.at(kPublishedRoot, "d/f").ino)) == held.at(kPublishedRoot, "d").ino);
  CHECK(held.failure(kPublishedRoot, "d", "x") == Errc::not_found);
  CHECK(must(held.page(kBase + kPublishedRoot, place_of(2, 0) - 1)).entries.empty());
}

TEST_CASE("entries above the tables are answered without a table") {
  Held held(tars());
  CHECK(must(held.attr_of(kBase + kPublishedRoot)).type == FileType::directory);
  CHECK(must(held.parent_of(kBase + kPublishedRoot)) == ino_of(InoKind::datasets, 17));
  CHECK(must(held.parent_of(kBase + kRecordsRoot)) == ino_of(InoKind::records, 17));
  CHECK(must(held.page(kBase + kRecordsRoot, 0)).last);
  const Ino container = held.at(kRecordsRoot, "a/t.tar").ino;
  CHECK(must(held.attr_of(container)).type == FileType::directory);
  CHECK(must(held.parent_of(container)) == held.at(kRecordsRoot, "a").ino);
  CHECK(held.asked == 0);
  CHECK(must(held.find(container, "keys.txt")).size == 24);
  CHECK(held.asked == 1);
}

TEST_CASE("records/ shows the containers that have a table, and what is in each") {
  Held held(tars());
  CHECK(held.names(kRecordsRoot, "") == Names{"a.tar", "a", "@files"});
  CHECK(held.names(kRecordsRoot, "a") == Names{"b", "t.tar"});
  CHECK(held.names(kRecordsRoot, "a/t.tar") == Names{"files", "index.npy", "keys.txt", "order", "part", "skipped.txt"});
  CHECK(held.names(kRecordsRoot, "a/b/u.mdb") == Names{"index.npy", "keys.txt", "order", "part"});
  CHECK(held.names(kRecordsRoot, "@files") == Names{"keys.txt", "order", "part"});
  {
    Contents all = held.walk(kRecordsRoot);
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
  Held held(spec);
  CHECK(held.names(kRecordsRoot, "") == Names{"@files"});
  CHECK(held.names(kRecordsRoot, "@files") == Names{"files", "index.npy", "keys.txt", "order", "part"});
}

TEST_CASE("part/ and order/ list nothing, and have the shares that are asked for by a plain name") {
  Held held(tars());
  for (const std::string container : {"a/t.tar", "a/b/u.mdb", "@files"}) {
    const std::string part = container + "/part", order = container + "/order";
    for (const std::string& dir : {part, order, part + "/4", part + "/4096", order + "/0", order + "/65535/7"}) {
      CAPTURE(dir);
      CHECK(held.at(kRecordsRoot, dir).type == FileType::directory);
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
    CHECK(must(held.parent_of(held.at(kRecordsRoot, order + "/3/4").ino)) == held.at(kRecordsRoot, order + "/3").ino);
    CHECK(must(held.parent_of(held.at(kRecordsRoot, order + "/3").ino)) == held.at(kRecordsRoot, order).ino);
    CHECK(must(held.parent_of(held.at(kRecordsRoot, part + "/4").ino)) == held.at(kRecordsRoot, part).ino);
    CHECK(must(held.parent_of(held.at(kRecordsRoot, part).ino)) == held.at(kRecordsRoot, container).ino);
  }
}

TEST_CASE("shares are .npy files of row numbers, and those of all ranks are all rows") {
  DatasetSpec spec;
  MadeContainer container{std::string(100, 'x'), {}, false};
  for (std::uint64_t i = 0; i < 50; ++i) container.records.push_back({"r" + std::to_string(i), 2 * i, 2});
  spec.containers["c"] = container;
  Held held(spec);
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
  Held held(tars());
  const auto rows_at = [&](const char* path) {
    const auto file = find_published(held.made.manifest, path);
    REQUIRE(file);
    return must(rows_of(held.made.manifest, *file, held.version->dataset->tables));
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
    const auto listed = Held(made).page(kBase + kPublishedRoot, 0);
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
  Held held(container);
  CHECK(held.page(held.at(kRecordsRoot, "a.tar").ino, 0).error().code == Errc::corrupt);
}

TEST_CASE("a directory with more entries than one page is listed in several") {
  DatasetSpec spec;
  MadeContainer container{std::string(3000, 'x'), {}};
  for (std::uint64_t i = 0; i < 3000; ++i) {
    spec.small["s/" + std::to_string(i)] = "";
    container.records.push_back({std::to_string(i), i, 1});
  }
  spec.containers["c"] = container;
  for (std::size_t i = 0; i < 1030; ++i) spec.containers["d/" + std::to_string(i)] = {"x", {{"m", 0, 1}}};
  Held held(spec);
  CHECK(held.names(kPublishedRoot, "s").size() == 3000);
  CHECK(held.names(kRecordsRoot, "c/files").size() == 3000);
  CHECK(held.names(kRecordsRoot, "d").size() == 1030);
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
    Held held(std::move(made));
    for (const std::uint64_t root : {std::uint64_t{kPublishedRoot}, kRecordsRoot}) {
      try {
        held.walk(root);
        ++walked;
      } catch (const std::runtime_error&) {
        ++refused;
      }
    }
    for (int i = 0; i < 20; ++i) {
      const Ino ino = kBase + (random() >> (random() % 64));
      const auto attr = held.attr_of(ino);
      static_cast<void>(held.parent_of(ino));
      static_cast<void>(held.find(ino, "x"));
      static_cast<void>(held.page(ino, random()));
      if (attr.ok() && attr->type == FileType::regular) static_cast<void>(held.ask(ino, &Subtree::open));
    }
  }
  CHECK(walked > 1000);
  CHECK(refused > 100);
}

}  // namespace weft::testing
