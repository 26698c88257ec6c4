#include <doctest/doctest.h>
#include <fmt/core.h>

#include "format/containers.h"
#include "format/tar_header.h"
#include "testing.h"
#include "unit/format/scans.h"

using namespace weft;
using namespace weft::testing;

namespace {

std::string padded(std::string text) {
  text.resize((text.size() + 511) / 512 * 512);
  return text;
}

struct Member {
  std::string name;
  std::string data = {};
  char type = '0';
  std::string link = {};
  std::string prefix = {};
  std::string size = {};  // the size field of the header; empty: the size of the data
};

std::string sealed(std::string block) {
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  return block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

std::string header(const Member& member) {
  std::string block(512, '\0');
  const auto put = [&block](std::size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  put(0, member.name);
  put(124, member.size.empty() ? fmt::format("{:011o}", member.data.size()) : member.size);
  put(156, std::string(1, member.type));
  put(157, member.link);
  put(257, std::string_view("ustar\0", 6));
  put(263, "00");
  put(345, member.prefix);
  return sealed(block);
}

std::string tar(const std::vector<Member>& members) {
  std::string out;
  for (const Member& member : members) out += header(member) + padded(member.data);
  return out + std::string(1024, '\0');
}

std::string pax(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (fmt::format("{}", length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

KeptRecords good(std::string_view file) {
  KeptRecords all;
  const Status status = scan(tar_container(), file, file.size() + 1, all);
  if (!status.ok()) FAIL(status.error().message);
  for (const std::size_t part : {1, 7, 512, 700}) {
    KeptRecords again;
    CHECK(scan(tar_container(), file, part, again).ok());
    CHECK(again.records == all.records);
    CHECK(again.links == all.links);
    CHECK(again.others == all.others);
  }
  return all;
}

Error bad(std::string_view file) {
  KeptRecords all;
  const Status status = scan(tar_container(), file, 1000, all);
  if (status.ok()) FAIL("a broken tar was scanned");
  CHECK(status.error().code == Errc::invalid);
  CHECK(status.error().message.find('\n') == std::string::npos);
  return status.error();
}

using One = KeptRecords::One;
using Pairs = KeptRecords::Pairs;

}  // namespace

TEST_CASE("tar: regular members are records, in order") {
  const std::string inner = tar({{"x", "inner"}});
  const auto found = good(tar({{"a", "hello"}, {"d/", "", '5'}, {"d/empty", ""}, {"d/b.tar", inner}, {"a", "again"}}));
  CHECK(found.records ==
        std::vector<One>{
            {"a", 512, 5}, {"d/empty", 2048, 0}, {"d/b.tar", 2560, inner.size()}, {"a", 2560 + inner.size() + 512, 5}});
  CHECK(found.links.empty());
  CHECK(found.others.empty());
}

TEST_CASE("tar: a tar of nothing has no records") {
  CHECK(good(std::string(1024, '\0')).records.empty());
  CHECK(good(tar({}) + "what stands behind the end does not count").records.empty());
}

TEST_CASE("tar: long names, of ustar, GNU and pax") {
  const std::string name = std::string(150, 'n');
  CHECK(good(tar({{"file", "1", '0', "", "some/dir"}})).records[0].name == "some/dir/file");
  CHECK(good(tar({{"././@LongLink", name + std::string(1, '\0'), 'L'}, {"cut", "1"}})).records[0].name == name);
  CHECK(good(tar({{"PaxHeader", pax("mtime", "1.5") + pax("path", "p/" + name), 'x'}, {"cut", "1"}})).records[0].name ==
        "p/" + name);
  const auto two =
      good(tar({{"g", pax("comment", "all"), 'g'}, {"PaxHeader", pax("path", "one"), 'x'}, {"cut", "1"}, {"b", "2"}}));
  CHECK(two.records[0].name == "one");
  CHECK(two.records[1].name == "b");
}

TEST_CASE("tar: sizes in pax records and in binary") {
  Member large{"a", std::string(600, 'x')};
  large.size = "00000000000";
  CHECK(good(tar({{"PaxHeader", pax("size", "600"), 'x'}, large, {"b", "1"}})).records[1].name == "b");
  large.size = std::string("\x80\0\0\0\0\0\0\0\0\0\x02\x58", 12);
  CHECK(good(tar({large, {"b", "1"}})).records[0].length == 600);
}

TEST_CASE("tar: names are those that tar would make below a directory") {
  const auto found = good(tar({{"./a//b/./c", "1"},
                               {"../up", "1"},
                               {"/etc/passwd", "1"},
                               {"a/../../b", "1"},
                               {"./", "", '0'},
                               {"bad\xff", "1"},
                               {"bell\a", "1"},
                               {std::string(99, 'n'), "1", '0', "", std::string(155, 'p')}}));
  CHECK(found.records[0].name == "a/b/c");
  CHECK(found.records.size() == 2);
  CHECK(found.others == Pairs{{"../up", "a name that leaves the tar"},
                              {"/etc/passwd", "an absolute name"},
                              {"a/../../b", "a name that leaves the tar"},
                              {"bad\xff", "a name that is not UTF-8"},
                              {"bell\a", "a name with control characters"}});
  CHECK(member_path("").why == "an empty name");
  CHECK(member_path("./.").why == "an empty name");
  CHECK(member_path(std::string(256, 'n')).why == "an over-long name");
  std::string deep = "a";
  for (int i = 0; i < 64; ++i) deep += "/a";
  CHECK(member_path(deep).why == "an over-long name");
}

TEST_CASE("tar: links within it are other names, others are left out") {
  const auto found = good(tar({{"d/a", "1"},
                               {"hard", "", '1', "d/a"},
                               {"d/soft", "", '2', "../d/a"},
                               {"out", "", '2', "../a"},
                               {"abs", "", '2', "/d/a"},
                               {"hard2", "", '1', "../a"},
                               {"self", "", '2', "."}}));
  CHECK(found.links == Pairs{{"hard", "d/a"}, {"d/soft", "d/a"}});
  CHECK(found.others == Pairs{{"out", "a link that leaves the tar"},
                              {"abs", "a link that leaves the tar"},
                              {"hard2", "a link that leaves the tar"},
                              {"self", "a link that leaves the tar"}});
}

TEST_CASE("tar: devices, fifos and sparse members are left out, and the chain goes on") {
  std::string sparse = header({"s", std::string(512, 'd'), 'S'});
  sparse[482] = 1;
  std::string map(512, '\0');
  map[504] = 1;
  const std::string last(512, '\0');
  const std::string file = header({"c", "", '3'}) + header({"b", "", '4'}) + header({"f", "", '6'}) + sealed(sparse) +
                           map + last + std::string(512, 'd') +
                           tar({{"PaxHeader", pax("GNU.sparse.major", "1"), 'x'}, {"t", "data"}, {"end", "1"}});
  const auto found = good(file);
  CHECK(
      found.others ==
      Pairs{{"c", "a device"}, {"b", "a device"}, {"f", "a fifo"}, {"s", "a sparse member"}, {"t", "a sparse member"}});
  CHECK(found.records.size() == 1);
  CHECK(file.substr(found.records[0].offset, 1) == "1");
}

TEST_CASE("tar: what is broken is refused") {
  const std::string whole = tar({{"a", std::string(600, 'x')}, {"b", "1"}});
  const std::size_t content = whole.size() - 1024;
  for (std::size_t length = 0; length < content + 512; length += 97) {
    CAPTURE(length);
    bad(whole.substr(0, length));
  }
  std::string spoiled = whole;
  spoiled[512 + 1024 + 3] ^= 1;
  CHECK(bad(spoiled).message == "expected a header, got a block whose checksum is wrong");
  CHECK(bad(tar({{"a", "1", '0', "", "", "77777777777"}})).message.find("got the end of the file") !=
        std::string::npos);
  CHECK(bad(tar({{"a", "1", '0', "", "", "9"}})).message.find("got no number") != std::string::npos);
  for (const char* text :
       {"x", "99 path=a\n", "0 path=a\n", "7 path=", "10 path:a\n", "99999999999999999999999 a=b\n"}) {
    CAPTURE(text);
    CHECK(bad(tar({{"p", text, 'x'}, {"a", "1"}})).message == "expected pax records, got other text");
  }
  Member huge{"p", "", 'x'};
  huge.size = "00004000001";
  CHECK(bad(tar({huge})).message.find("at most 1048576 bytes") != std::string::npos);
  CHECK(bad("not a tar").message.find("block of zeros") != std::string::npos);
}

TEST_CASE("tar: claims by name or by its magic") {
  const std::string file = tar({{"a", "1"}});
  CHECK(container_format("a.tar", {}) == &tar_container());
  CHECK(container_format("a.bin", as_bytes(file).first(512)) == &tar_container());
  CHECK(container_format("a.tar.gz", as_bytes("\x1f\x8b")) == nullptr);
  CHECK(container_format("a.bin", as_bytes(file).first(200)) == nullptr);
}
