//! The topics of outputs: one table has the name and the rows of each.

/// Where an output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Public events, append-only.
    Events,
    /// Rows that decisions need, compacted.
    Changelog,
    /// Batches of a run's events, compacted.
    History,
    /// Timers, compacted.
    Timers,
    /// Outcomes of public commands, append-only.
    Replies,
    /// Refused public commands, append-only.
    Rejections,
}

/// The kinds of rows, each ordered by its own keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Rows that decisions need.
    State,
    /// Batches of a run's events.
    History,
    /// Timers.
    Timers,
    /// Rows by which runs are found: made of the others, and kept by no topic.
    Index,
}

/// A line of the table.
struct TopicLine {
    topic: Topic,
    /// Without a prefix.
    name: &'static str,
    /// The rows that it keeps, by key; None: it is append-only.
    space: Option<Space>,
}

/// In the order of their numbers: compacted topics first.
const TABLE: [TopicLine; 6] = [
    TopicLine { topic: Topic::Changelog, name: "changelog", space: Some(Space::State) },
    TopicLine { topic: Topic::History, name: "history", space: Some(Space::History) },
    TopicLine { topic: Topic::Timers, name: "timers", space: Some(Space::Timers) },
    TopicLine { topic: Topic::Events, name: "events", space: None },
    TopicLine { topic: Topic::Replies, name: "replies", space: None },
    TopicLine { topic: Topic::Rejections, name: "rejections", space: None },
];

impl Topic {
    /// How many there are.
    pub const COUNT: usize = TABLE.len();

    /// All, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Topic> + Clone {
        TABLE.iter().map(|line| line.topic)
    }

    /// Those that keep the last value of each key.
    pub fn compacted() -> impl Iterator<Item = Topic> + Clone {
        Self::all().filter(|topic| topic.is_compacted())
    }

    /// Those that keep every entry.
    pub fn append_only() -> impl Iterator<Item = Topic> + Clone {
        Self::all().filter(|topic| !topic.is_compacted())
    }

    /// Its number in memory, from 0. It is written nowhere.
    pub fn number(self) -> usize {
        match self {
            Topic::Changelog => 0,
            Topic::History => 1,
            Topic::Timers => 2,
            Topic::Events => 3,
            Topic::Replies => 4,
            Topic::Rejections => 5,
        }
    }

    /// Its name, without a prefix.
    pub fn name(self) -> &'static str {
        TABLE[self.number()].name
    }

    /// The rows that a compacted topic keeps.
    pub fn space(self) -> Option<Space> {
        TABLE[self.number()].space
    }

    /// Compacted topics keep the last value of each key and know tombstones; the others keep every entry.
    pub fn is_compacted(self) -> bool {
        self.space().is_some()
    }
}

impl Space {
    /// All, in order.
    pub const ALL: [Space; 4] = [Space::State, Space::History, Space::Timers, Space::Index];

    /// The topic that keeps its rows; none where they are made again of other rows.
    pub fn topic(self) -> Option<Topic> {
        match self {
            Space::State => Some(Topic::Changelog),
            Space::History => Some(Topic::History),
            Space::Timers => Some(Topic::Timers),
            Space::Index => None,
        }
    }

    /// The name of its column family: that of its topic, if it has one.
    pub fn name(self) -> &'static str {
        self.topic().map_or("index", Topic::name)
    }
}

/// A value for each topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerTopic<T>([T; Topic::COUNT]);

impl<T> PerTopic<T> {
    /// Makes the value of each topic.
    pub fn new(mut of: impl FnMut(Topic) -> T) -> Self {
        Self(std::array::from_fn(|number| of(TABLE[number].topic)))
    }

    /// All, in the order of the topics' numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Topic, &T)> {
        Topic::all().zip(&self.0)
    }
}

impl<T> std::ops::Index<Topic> for PerTopic<T> {
    type Output = T;

    fn index(&self, topic: Topic) -> &T {
        &self.0[topic.number()]
    }
}

impl<T> std::ops::IndexMut<Topic> for PerTopic<T> {
    fn index_mut(&mut self, topic: Topic) -> &mut T {
        &mut self.0[topic.number()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_has_the_line_of_its_number_and_each_space_one_topic() {
        assert!(TABLE.iter().enumerate().all(|(number, line)| line.topic.number() == number));
        let with_topic = Space::ALL.into_iter().filter_map(|space| Some((space, space.topic()?)));
        assert!(with_topic.clone().all(|(space, topic)| topic.space() == Some(space)));
        assert_eq!(Topic::compacted().count(), with_topic.count());
    }
}
