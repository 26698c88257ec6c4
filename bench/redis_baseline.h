// EvoStore's baseline as in its artifact (nas/transfer_learning/transfer_methods/_redis.py), on hiredis: a set of model
// ids, a list of layer names for each, and a readers-writer lock of three keys. A query reads all lists.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct redisContext;
struct redisReply;

namespace weft::bench {

class RedisBaseline {
 public:
  explicit RedisBaseline(const std::string& socket);  // throws if redis does not answer
  ~RedisBaseline();
  RedisBaseline(const RedisBaseline&) = delete;
  RedisBaseline& operator=(const RedisBaseline&) = delete;

  // Adds a model, pipelined and without the lock. flush() waits for all of them.
  void store(const std::string& id, const std::vector<std::string>& names);
  void flush();

  // Returns the largest number of names that a model shares with these, and increments that model's counts.
  std::uint64_t best_match(const std::vector<std::string>& names, bool locked);

 private:
  struct Reply;
  Reply command(const std::vector<std::string>& words);
  Reply next();
  void append(const std::vector<std::string>& words);
  void take(const std::string& lock);
  void give(const std::string& lock);
  void begin_reading();
  void end_reading();

  redisContext* context_;
  std::string token_;
  std::uint64_t waiting_ = 0;  // outstanding replies
};

}  // namespace weft::bench
