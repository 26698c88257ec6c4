#include "weft/programs/vfs.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "unit/vfs/vfs_fixture.h"
#include "vfs/numbers.h"
#include "vfs/subtree.h"
#include "weft/model/format.h"
#include "weft/store/gc.h"

namespace weft::testing {
namespace {

using Visit = std::function<void(const std::string& path, const Attr& attr)>;

// Visits all entries below `dir`, and checks that the operations agree on each.
void visit(Vfs& vfs, Ino dir, const std::string& path, const Visit& what) {
  for (const DirEntry& entry : list_all(vfs, dir)) {
    const std::string here = path + "/" + entry.name;
    CAPTURE(here);
    const Attr looked_up = must(vfs.lookup(dir, entry.name));
    const Attr asked = must(vfs.getattr(looked_up.ino));
    const Attr listed = must(vfs.getattr(entry.attr.ino));  // another number may lead to the same file
    if (entry.attr_known) CHECK(looked_up.ino == entry.attr.ino);
    CHECK(listed.size == looked_up.size);
    CHECK(listed.mtime_ns == looked_up.mtime_ns);
    CHECK(looked_up.type == entry.attr.type);
    CHECK(asked.ino == looked_up.ino);
    for (const Attr& other : {asked, entry.attr_known ? entry.attr : asked}) {
      CHECK(other.size == looked_up.size);
      CHECK(other.blocks == looked_up.blocks);
      CHECK(other.nlink == looked_up.nlink);
      CHECK(other.mtime_ns == looked_up.mtime_ns);
      CHECK(other.lasting_name == looked_up.lasting_name);
      CHECK(other.lasting_attr == looked_up.lasting_attr);
      CHECK(other.counted == looked_up.counted);
    }
    what(here, looked_up);
    if (looked_up.type != FileType::directory) continue;
    CHECK(must(vfs.parent(looked_up.ino)) == dir);
    visit(vfs, looked_up.ino, here, what);
  }
}

}  // namespace

TEST_CASE("an empty store has a README, a status and no models") {
  VfsFixture f;
  CHECK(names_in(*f.vfs, "") == Names{".weft", "README", "datasets", "hub", "layers", "lineage", "models", "records",
                                      "safetensors", "tensors"});
  CHECK(names_in(*f.vfs, ".weft") == Names{"metrics", "peers", "status"});
  CHECK(must(f.vfs->lookup(ino_at(*f.vfs, ".weft"), "events")).ino == kEventsIno);
  for (const char* tree : {"models", "layers", "tensors", "safetensors", "lineage", "hub"}) {
    CHECK(names_in(*f.vfs, tree).empty());
    CHECK(must(f.vfs->parent(ino_at(*f.vfs, tree))) == kRootIno);
    CHECK(f.vfs->open(ino_at(*f.vfs, tree)).error().code == Errc::is_dir);
  }
  CHECK(read_path(*f.vfs, "README").find("models/") != std::string::npos);
  f.vfs->set_mount_status([] { return std::string("\"mode\": \"none\""); });
  CHECK(read_path(*f.vfs, ".weft/status").find("\"none\"") != std::string::npos);
  CHECK(walk(*f.vfs, "models/m").error().code == Errc::not_found);
  CHECK(f.vfs->list(kReadmeIno, 0).error().code == Errc::not_dir);
  CHECK(f.vfs->lookup(kReadmeIno, "x").error().code == Errc::not_dir);
  CHECK(f.vfs->getattr(999).error().code == Errc::not_found);
  CHECK(f.vfs->getattr(123456).error().code == Errc::not_found);
  CHECK(must(f.vfs->statfs()).f_blocks > 0);
}

TEST_CASE("published files are byte for byte what was published") {
  VfsFixture f;
  f.publish_model("org/llama", 1);
  f.publish_model("org/llama", 2, {"org/llama"}, {"prod"});
  CHECK(names_in(*f.vfs, "models") == Names{"org"});
  CHECK(names_in(*f.vfs, "models/org") == Names{"llama"});
  CHECK(names_in(*f.vfs, "models/org/llama") == Names{"1", "2", "latest", "prod"});
  for (const std::uint64_t number : {1U, 2U}) {
    const std::string version = "models/org/llama/" + std::to_string(number);
    for (const std::string file : {"model.safetensors", "1_Pooling/config.json", "empty.txt"})
      CHECK(read_path(*f.vfs, version + "/" + file) == f.source_text("org/llama", number, file));
    CHECK(names_in(*f.vfs, version) == Names{"1_Pooling", "empty.txt", "model.safetensors"});
  }
}

TEST_CASE("the rest of a path is the same in each tree, and each directory and link has a number of its own there") {
  VfsFixture f;
  f.publish_model("org/llama", 1);
  f.publish_model("org/llama", 2, {"org/llama"}, {"prod"});
  std::map<Ino, std::string> seen;
  for (const std::string tree : {"models", "layers", "tensors", "safetensors", "lineage"}) {
    CAPTURE(tree);
    const std::string model = tree + "/org/llama";
    Names names{"1", "2", "latest", "prod"};
    if (tree == "lineage") names.emplace_back("versions.tsv");
    CHECK(names_in(*f.vfs, model) == names);
    for (const std::string& link : {model + "/latest", model + "/prod"})
      CHECK(must(f.vfs->readlink(ino_at(*f.vfs, link))) == "2");
    for (const std::string& path :
         {tree, tree + "/org", model, model + "/1", model + "/2", model + "/latest", model + "/prod"}) {
      const auto added = seen.emplace(ino_at(*f.vfs, path), path);
      CAPTURE(path);
      CAPTURE(added.first->second);
      CHECK(added.second);
    }
    const Attr first = must(walk(*f.vfs, "models/org/llama/1"));
    CHECK(must(walk(*f.vfs, model + "/1")).mtime_ns == first.mtime_ns);
  }
  CHECK(names_in(*f.vfs, "layers/org/llama/2") == Names{"empty.npy", "encoder", "encoder.safetensors", "layer.json"});
  CHECK(names_in(*f.vfs, "layers/org/llama/2/encoder/1") == Names{"layer.json", "weight.npy"});
  CHECK(names_in(*f.vfs, "tensors/org/llama/2") == Names{"empty.npy", "encoder.0.weight.npy", "encoder.1.weight.npy"});
}

TEST_CASE("a version without tensors has empty layers/ and tensors/") {
  VfsFixture f;
  write_file(f.dir / "plain/config.json", "{}");
  f.publish({f.dir / "plain"}, "plain");
  CHECK(names_in(*f.vfs, "models/plain/1") == Names{"config.json"});
  CHECK(names_in(*f.vfs, "layers/plain/1").empty());
  CHECK(names_in(*f.vfs, "tensors/plain/1").empty());
}

TEST_CASE("published files may be called as the trees are") {
  VfsFixture f;
  write_model(f.dir / "odd", 1);
  for (const char* name : {"info.json", "layers", "tensors/x.txt", "lineage/parents/p", "latest", "1/2"})
    write_file(f.dir / "odd/" + name, name);
  f.publish({f.dir / "odd"}, "odd");
  for (const std::string name : {"info.json", "layers", "tensors/x.txt", "lineage/parents/p", "latest", "1/2"})
    CHECK(read_path(*f.vfs, "models/odd/1/" + name) == name);
  CHECK(read_path(*f.vfs, "lineage/odd/1/info.json").find("\"model\": \"odd\"") != std::string::npos);
  CHECK(names_in(*f.vfs, "tensors/odd/1") == Names{"empty.npy", "encoder.0.weight.npy", "encoder.1.weight.npy"});
}

TEST_CASE("a large file of which nothing was known can be passed through, one that shares cannot") {
  VfsFixture f;
  const auto publish = [&](const std::string& name, std::uint64_t seed) {
    write_file(f.dir / name + "/model.safetensors",
               safetensors_file({{"a", "U8", {8U << 20U}, random_bytes(8U << 20U, 1)},
                                 {"b", "U8", {8U << 20U}, random_bytes(8U << 20U, seed)}}));
    f.publish({f.dir / name}, name);
    const auto file = must(f.vfs->open(must(walk(*f.vfs, "models/" + name + "/1/model.safetensors")).ino));
    CHECK(read_all(*file) == read_text(f.dir / name + "/model.safetensors"));
    return file->backing_fd();
  };
  CHECK(publish("first", 2) >= 0);
  CHECK(publish("second", 3) == -1);
}

TEST_CASE("links lead to the newest version and to tags, and follow at once") {
  VfsFixture f;
  f.publish_model("m", 1);
  const Attr latest = must(walk(*f.vfs, "models/m/latest"));
  CHECK(latest.type == FileType::link);
  CHECK(latest.size == 1);
  CHECK_FALSE(latest.lasting_name);
  CHECK(must(f.vfs->readlink(latest.ino)) == "1");
  f.publish_model("m", 2, {}, {"prod"});
  CHECK(must(f.vfs->readlink(latest.ino)) == "2");
  const Attr tag = must(walk(*f.vfs, "models/m/prod"));
  CHECK(must(f.vfs->readlink(tag.ino)) == "2");
  must(f.store->set_tag("m", "prod", 1));
  CHECK(must(f.vfs->readlink(tag.ino)) == "1");
  must(f.store->set_tag("m", "prod", std::nullopt));
  CHECK(walk(*f.vfs, "models/m/prod").error().code == Errc::not_found);
}

TEST_CASE("similar names are Errc::not_found") {
  VfsFixture f;
  f.publish_model("m", 1);
  for (const std::string name : {"0", "01", "2", "1 ", "99999999999999999999", "Latest", "x", ""})
    CHECK(walk(*f.vfs, "models/m/" + name).error().code == Errc::not_found);
  for (const std::string path :
       {"models/m/1/nothing", "models/m/1/info.json", "models/m/1/tensors", "models/m/1/lineage",
        "models/m/versions.tsv", "layers/m/1/model.safetensors", "tensors/m/1/layer.json", "lineage/m/1/graph.dot",
        "lineage/m/1/model.safetensors", "hub/m", "hub/models--x"})
    CHECK(walk(*f.vfs, path).error().code == Errc::not_found);
  CHECK(walk(*f.vfs, "models/m/1/empty.txt/x").error().code == Errc::not_dir);
  CHECK(walk(*f.vfs, "models/m/latest/x").error().code == Errc::not_dir);
  CHECK(must(walk(*f.vfs, "models/m/1")).lasting_entries);
}

TEST_CASE("all operations agree about everything in the tree, and sizes are exact") {
  VfsFixture f;
  f.publish_model("m", 1);
  f.publish_model("org/n", 2, {"m"}, {"prod"});
  f.publish_model("m", 3, {"org/n@1", "m@1"});
  std::size_t files = 0;
  visit(*f.vfs, kRootIno, "", [&](const std::string&, const Attr& attr) {
    if (attr.type == FileType::link) CHECK(must(f.vfs->readlink(attr.ino)).size() == attr.size);
    if (attr.type != FileType::regular) return;
    ++files;
    const Opened opened = must(f.vfs->open_with_attr(attr.ino));
    CHECK(read_all(*opened.file).size() == attr.size);
    CHECK(opened.attr.ino == attr.ino);
    CHECK(opened.attr.size == attr.size);
    CHECK(opened.attr.nlink == attr.nlink);
    CHECK(opened.attr.mtime_ns == attr.mtime_ns);
    CHECK((attr.blocks > 0) == (attr.size > 0));
  });
  CHECK(files > 30);
}

TEST_CASE("a tensor is one inode wherever it appears, and its links are counted") {
  VfsFixture f;
  f.publish_model("m", 1);
  f.publish_model("n", 2);
  std::map<Ino, std::uint64_t> seen;
  std::map<Ino, std::uint64_t> said;
  visit(*f.vfs, kRootIno, "", [&](const std::string& path, const Attr& attr) {
    if (!path.ends_with(".npy")) return;
    ++seen[attr.ino];
    said[attr.ino] = attr.nlink;
  });
  CHECK(seen == said);
  const std::string shared = "encoder.1.weight.npy";
  CHECK(must(walk(*f.vfs, "tensors/m/1/" + shared)).ino == must(walk(*f.vfs, "tensors/n/1/" + shared)).ino);
  CHECK(ino_at(*f.vfs, "layers/n/1/encoder/1/weight.npy") == ino_at(*f.vfs, "tensors/m/1/" + shared));
  const std::string own = "encoder.0.weight.npy";
  CHECK(must(walk(*f.vfs, "tensors/m/1/" + own)).ino != must(walk(*f.vfs, "tensors/n/1/" + own)).ino);
}

TEST_CASE("a published file has one link, hub/ leads to it, and safetensors/ has it as another file without blocks") {
  VfsFixture f;
  f.publish_model("org/m", 1);
  f.publish_model("org/m", 2);
  f.publish_model("a/b/c", 3);  // the hub cannot show this name
  std::map<Ino, std::uint64_t> seen, said;
  visit(*f.vfs, kRootIno, "", [&](const std::string& path, const Attr& attr) {
    if (attr.type != FileType::regular || !path.ends_with("model.safetensors")) return;
    ++seen[attr.ino];
    said[attr.ino] = attr.nlink;
  });
  CHECK(seen == said);
  CHECK(said[ino_at(*f.vfs, "models/org/m/1/model.safetensors")] == 1);
  CHECK(said[ino_at(*f.vfs, "models/a/b/c/1/model.safetensors")] == 1);
  const Attr published = must(walk(*f.vfs, "models/a/b/c/1/model.safetensors"));
  const Attr shown = must(walk(*f.vfs, "safetensors/a/b/c/1/model.safetensors"));
  CHECK(shown.ino != published.ino);
  CHECK(shown.size == published.size);
  CHECK(shown.large == published.large);
  CHECK(published.blocks > 1);
  CHECK(shown.blocks == 1);
  CHECK(shown.lasting_attr);
  CHECK(read_path(*f.vfs, "safetensors/a/b/c/1/model.safetensors") == f.source_text("a/b/c", 3, "model.safetensors"));
  CHECK(must(f.vfs->sha256_of(shown.ino)) == must(f.vfs->sha256_of(published.ino)));
}

TEST_CASE("a tensor view is an npy header and the tensor's bytes") {
  VfsFixture f;
  f.publish_model("m", 1);
  const std::string text = read_path(*f.vfs, "tensors/m/1/encoder.0.weight.npy");
  const auto bytes = random_bytes(16384, 1);
  REQUIRE(text.size() > bytes.size());
  CHECK(text.starts_with("\x93NUMPY"));
  CHECK(text.ends_with(as_text(bytes)));
  CHECK(read_path(*f.vfs, "tensors/m/1/empty.npy").size() % 64 == 0);
  const auto attributes = must(f.vfs->xattrs(must(walk(*f.vfs, "tensors/m/1/encoder.0.weight.npy")).ino));
  REQUIRE(attributes.size() == 3);
  CHECK(attributes[0] == std::pair<std::string, std::string>("user.weft.dtype", "F32"));
  CHECK(attributes[1].second == "[64, 64]");
  CHECK(attributes[2].second.size() == 64);
}

TEST_CASE("a layer's container holds its tensors") {
  VfsFixture f;
  f.publish_model("m", 1);
  const std::string text = read_path(*f.vfs, "layers/m/1/encoder.safetensors");
  MemorySource source(text);
  const Layout layout = must(parse_file("encoder", "encoder.safetensors", source));
  std::set<std::string> names;
  for (const FoundTensor& tensor : layout.tensors) {
    names.insert(tensor.name);
    const auto bytes = random_bytes(16384, tensor.name == "encoder.0.weight" ? 1 : 1001);
    CHECK(std::string_view(text).substr(tensor.parts.at(0).offset, tensor.parts.at(0).length) == as_text(bytes));
  }
  CHECK(names == std::set<std::string>{"encoder.0.weight", "encoder.1.weight"});
}

TEST_CASE("a container that is opened again has the bytes of the first time, also after a trim") {
  VfsFixture f;
  f.publish_model("m", 1);
  f.publish_model("m", 2);
  const auto texts = [&f] {
    std::vector<std::string> all;
    for (const char* path : {"layers/m/1/encoder.safetensors", "layers/m/2/encoder.safetensors",
                             "layers/m/1/encoder/1.safetensors", "layers/m/2/encoder/1.safetensors"}) {
      const Attr attr = must(walk(*f.vfs, path));
      all.push_back(read_ino(*f.vfs, attr.ino));
      CHECK(all.back().size() == attr.size);
    }
    return all;
  };
  const std::vector<std::string> first = texts();
  CHECK(first[0] != first[1]);
  CHECK(first[0] != first[2]);
  CHECK(first[2] == first[3]);
  CHECK(texts() == first);
  f.vfs->trim();
  CHECK(texts() == first);
}

TEST_CASE("a removed version is gone by name, and what is open stays readable through gc") {
  VfsFixture f;
  f.publish_model("m", 1);
  f.publish_model("m", 2);
  const std::string text = f.source_text("m", 1, "model.safetensors");
  const Attr attr = must(walk(*f.vfs, "models/m/1/model.safetensors"));
  const auto file = must(f.vfs->open(attr.ino));
  must(f.store->remove_version("m", 1));
  CHECK(walk(*f.vfs, "models/m/1").error().code == Errc::not_found);
  CHECK(names_in(*f.vfs, "models/m") == Names{"2", "latest"});
  CHECK(must(f.vfs->getattr(attr.ino)).size == attr.size);
  must(f.store->gc({}, no_progress()));
  CHECK(read_all(*file) == text);
  CHECK(read_path(*f.vfs, "models/m/2/model.safetensors") == f.source_text("m", 2, "model.safetensors"));
}

TEST_CASE("answers are constant until the next commit of any process, and then current") {
  VfsFixture f;
  f.publish_model("m", 1, {}, {"best"});
  f.publish_model("n", 1);
  const auto reader = must(Store::open(f.dir / "store", {}));
  const auto vfs = Vfs::make(*reader, VfsOptions{});
  const auto ask = [&](std::string_view path) { return must(walk(*vfs, path)); };
  const auto best = [&] { return must(vfs->readlink(ask("models/m/best").ino)); };
  const Ino shared = ask("models/n/1/model.safetensors").ino;
  const auto blocks = [&] {
    const Opened opened = must(vfs->open_with_attr(shared));
    CHECK(read_all(*opened.file) == f.source_text("n", 1, "model.safetensors"));
    CHECK(must(vfs->getattr(shared)).blocks == opened.attr.blocks);
    return opened.attr.blocks;
  };
  for (int time = 0; time < 2; ++time) {
    CHECK(ask("models/m/1").type == FileType::directory);
    CHECK(best() == "1");
    CHECK(blocks() == 1);  // m owns its bytes
  }
  const std::uint64_t tagged_ns = ask("models/m/best").mtime_ns;
  f.publish_model("m", 2, {}, {"best"});
  CHECK(ask("models/m/best").mtime_ns > tagged_ns);
  CHECK(best() == "2");
  REQUIRE(f.store->remove_version("m", 1).ok());
  CHECK(walk(*vfs, "models/m/1").error().code == Errc::not_found);
  CHECK(blocks() > 1);  // n owns them after the removal
  REQUIRE(f.store->remove_version("m", 2).ok());
  CHECK(walk(*vfs, "models/m").error().code == Errc::not_found);
}

TEST_CASE("inode numbers and times are the same after a reopen") {
  VfsFixture f;
  f.publish_model("m", 1);
  f.publish_model("org/n", 2, {"m"}, {"prod"});
  const auto everything = [&] {
    std::map<std::string, std::pair<Ino, std::uint64_t>> out;
    visit(*f.vfs, kRootIno, "", [&](const std::string& path, const Attr& attr) {
      out[path] = {attr.ino, attr.mtime_ns};
    });
    return out;
  };
  const auto before = everything();
  f.vfs.reset();
  f.store.reset();
  f.store = must(Store::open(f.dir / "store", OpenOptions{}));
  f.restart();
  CHECK(everything() == before);
}

TEST_CASE("blocks add up to the bytes that the store keeps") {
  VfsFixture f;
  f.publish_model("m", 1);
  f.publish_model("m", 2);
  f.publish_model("n", 1);
  std::uint64_t blocks = 0;
  std::uint64_t files = 0;
  visit(*f.vfs, kModelsIno, "", [&](const std::string&, const Attr& attr) {
    blocks += attr.blocks;
    files += attr.type == FileType::regular ? 1 : 0;
  });
  const StoreCounts counts = must(f.store->counts());
  CHECK(blocks * 512 >= counts.blob_bytes);
  CHECK(blocks * 512 <= counts.blob_bytes + files * 512);
}

TEST_CASE("a page of a large directory continues after an entry that may have gone") {
  VfsFixture f;
  const std::size_t count = kEntriesPerPage + 50;
  const auto name = [](std::size_t i) { return fmt::format("m{:04}", i); };
  write_file(f.dir / "plain/config.json", "{}");
  ImportOptions options;
  options.paths = {f.dir / "plain"};
  options.name = "base";
  must(import_paths(*f.store, options, no_progress()));
  options.parents = {"base@1"};
  for (std::size_t i = 0; i < count; ++i) {
    options.name = "org/" + name(i);
    must(import_paths(*f.store, options, no_progress()));
  }
  const std::string children = "lineage/base/1/children";
  for (const std::string& path : {std::string("models/org"), std::string("layers/org"), children}) {
    CAPTURE(path);
    const Ino dir = ino_at(*f.vfs, path);
    CHECK(list_all(*f.vfs, dir).size() == count);
    const DirPage first = must(f.vfs->list(dir, 0));
    CHECK_FALSE(first.last);
    CHECK(first.entries.size() == kEntriesPerPage);
    CHECK(must(f.vfs->list(dir, first.entries[9].place)).entries.front().name == first.entries[10].name);
  }
  CHECK(names_in(*f.vfs, "hub").size() == count + 1);

  const DirPage models = must(f.vfs->list(ino_at(*f.vfs, "models/org"), 0));
  const DirPage hub = must(f.vfs->list(ino_at(*f.vfs, "hub"), 0));
  const DirPage kin = must(f.vfs->list(ino_at(*f.vfs, children), 0));
  for (const std::size_t i : {kEntriesPerPage - 2, kEntriesPerPage - 1, kEntriesPerPage})
    must(f.store->remove_version("org/" + name(i), 1));
  const auto after = [&](const std::string& path, const DirPage& page) {
    return must(f.vfs->list(ino_at(*f.vfs, path), page.entries.back().place)).entries.front().name;
  };
  CHECK(after("models/org", models) == name(kEntriesPerPage + 1));
  CHECK(after("hub", hub) == "models--org--" + name(kEntriesPerPage + 1));
  CHECK(after(children, kin) == "org%2F" + name(kEntriesPerPage + 1) + "@1");
  CHECK(names_in(*f.vfs, "models/org").size() == count - 3);
}

TEST_CASE("a tag that is set again has another inode number") {
  VfsFixture f;
  f.publish_model("m", 1, {}, {"a", "b", "c"});
  const Ino model = ino_at(*f.vfs, "models/m");
  const Attr before = must(walk(*f.vfs, "models/m/b"));
  const auto all = must(f.vfs->list(model, 0)).entries;
  REQUIRE(all[3].name == "b");
  must(f.store->set_tag("m", "b", std::nullopt));
  CHECK(must(f.vfs->list(model, all[3].place)).entries.front().name == "c");
  CHECK(f.vfs->getattr(before.ino).error().code == Errc::not_found);
  must(f.store->set_tag("m", "b", 1));
  CHECK(must(f.vfs->list(model, all[3].place)).entries.front().name == "c");
  CHECK(f.vfs->getattr(before.ino).error().code == Errc::not_found);
  CHECK(f.vfs->readlink(before.ino).error().code == Errc::not_found);
  CHECK(must(walk(*f.vfs, "models/m/b")).ino != before.ino);
}

TEST_CASE("an impossible number of hub/ is no inode") {
  VfsFixture f;
  for (const InoKind tree : {InoKind::layers, InoKind::tensors, InoKind::safetensors, InoKind::lineage}) {
    CHECK(f.vfs->getattr(ino_of(tree, kHubIno)).error().code == Errc::not_found);
    CHECK(f.vfs->getattr(ino_of(tree, kModelsIno)).ok());
  }
}

}  // namespace weft::testing
