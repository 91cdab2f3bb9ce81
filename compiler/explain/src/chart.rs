//! A small chart as SVG: values over a count, both on logarithmic axes.
//!
//! It takes its colours from the page (`currentColor`), so that it is right on dark and on light, and tells its
//! numbers in words for readers that cannot see it.

use crate::math::escape_markup as escape;
use std::fmt::Write;

/// Curves over one axis.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What runs across, with its unit.
    pub across: String,
    /// What runs up, with its unit.
    pub up: String,
    /// The curves.
    pub series: Vec<Series>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name; may be empty where there is one only.
    pub name: String,
    /// Pairs of across and up. A value of 0 or less is a ring at the lower edge, one that
    /// is not finite is left out.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// What a page's style sheet says, for a file without a page.
const FILE_STYLE: &str = "text{fill:#222;font:11px sans-serif}.grid{stroke:#ddd}.curve{fill:none;stroke:#1f5fbf;\
                          stroke-width:2}.point{fill:#1f5fbf}.c1{stroke:#b3541e}.point.c1{fill:#b3541e}";

/// The range of an axis in powers: of 2 across, of 10 up.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn of(values: impl Iterator<Item = f64>) -> Option<Range> {
        let finite = values.filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        let (low, high) = (low.floor(), high.ceil());
        Some(Range { low, high: if high > low { high } else { low + 1.0 } })
    }

    /// Where a power lies between 0 and 1.
    fn share(&self, power: f64) -> f64 {
        ((power - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// At most eight whole powers.
    fn ticks(&self) -> Vec<f64> {
        let step = ((self.high - self.low) / 7.0).ceil().max(1.0);
        let count = ((self.high - self.low) / step).floor() as usize;
        (0..=count).map(|n| self.low + step * n as f64).collect()
    }
}

impl Chart {
    /// The chart as an `<svg>` element; empty where no point can be drawn.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let across = Range::of(points().map(|(x, _)| x.log2()));
        let up = Range::of(points().filter(|(_, y)| *y > 0.0).map(|(_, y)| y.log10()));
        let (Some(across), up) = (across, up.unwrap_or(Range { low: -1.0, high: 0.0 })) else {
            return String::new();
        };
        let mut out = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" \
             xmlns=\"http://www.w3.org/2000/svg\"><title>{}</title>",
            escape(&self.told()),
            escape(&self.title)
        );
        self.frame(&across, &up, &mut out);
        for (n, series) in self.series.iter().enumerate() {
            curve(series, n, &across, &up, &mut out);
        }
        out.push_str("</svg>");
        out
    }

    /// The chart as an SVG file of its own, dark on white; empty where no point can be drawn.
    pub fn file(&self) -> String {
        let svg = self.svg();
        match svg.split_once("</title>") {
            Some((head, rest)) => format!(
                "{head}</title><style>{FILE_STYLE}</style><rect width=\"{WIDTH}\" height=\"{HEIGHT}\" \
                 fill=\"white\"/>{rest}\n"
            ),
            None => svg,
        }
    }

    /// The numbers in words.
    fn told(&self) -> String {
        let curves = self.series.iter().map(|s| {
            let points: Vec<String> = s.points.iter().map(|(x, y)| format!("{y:.1e} at {x}")).collect();
            format!("{} {}", s.name, points.join(", ")).trim().to_string()
        });
        format!("{}; {} over {}: {}", self.title, self.up, self.across, curves.collect::<Vec<_>>().join("; "))
    }

    // Writing to a string cannot fail.
    fn frame(&self, across: &Range, up: &Range, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for power in across.ticks() {
            let x = x_of(across, power);
            let n = 2f64.powf(power);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/><text x=\"{x:.1}\" \
                 y=\"{:.1}\" text-anchor=\"middle\">{n}</text>",
                bottom + 16.0
            );
        }
        for power in up.ticks() {
            let y = y_of(up, power);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" \
                 y=\"{:.1}\" text-anchor=\"end\">1e{power}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text class=\"axis\" \
             transform=\"translate(12 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            (LEFT + right) / 2.0,
            HEIGHT - 8.0,
            escape(&self.across),
            (TOP + bottom) / 2.0,
            escape(&self.up)
        );
    }
}

fn x_of(across: &Range, power: f64) -> f64 {
    LEFT + across.share(power) * (WIDTH - LEFT - RIGHT)
}

fn y_of(up: &Range, power: f64) -> f64 {
    HEIGHT - BOTTOM - up.share(power) * (HEIGHT - TOP - BOTTOM)
}

fn curve(series: &Series, n: usize, across: &Range, up: &Range, out: &mut String) {
    let drawn = series.points.iter().filter(|(x, y)| x.log2().is_finite() && y.is_finite());
    let (zeros, drawn): (Vec<_>, Vec<_>) = drawn.partition(|(_, y)| *y <= 0.0);
    let places: Vec<(f64, f64)> =
        drawn.iter().map(|(x, y)| (x_of(across, x.log2()), y_of(up, y.log10()))).collect();
    let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(out, "<polyline class=\"curve c{n}\" points=\"{}\"/>", line.join(" "));
    for (x, y) in &places {
        let _ = write!(out, "<circle class=\"point c{n}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
    }
    for (x, _) in zeros {
        let (x, y) = (x_of(across, x.log2()), y_of(up, f64::NEG_INFINITY));
        let _ = write!(
            out,
            "<circle class=\"curve c{n}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/><text x=\"{:.1}\" y=\"{:.1}\">0</text>",
            x + 7.0,
            y - 5.0
        );
    }
    if let (false, Some((x, y))) = (series.name.is_empty(), places.last()) {
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y - 8.0,
            escape(&series.name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> String {
        let series = vec![Series { name: "a<b".into(), points }];
        Chart { title: "t".into(), across: "n".into(), up: "e".into(), series }.svg()
    }

    #[test]
    fn points_lie_inside_the_frame() {
        let svg = chart(vec![(1.0, 0.0), (4.0, 1e-5), (64.0, 2.0), (128.0, f64::NAN)]);
        for part in svg.split("cx=\"").skip(1) {
            let x: f64 = part.split('"').next().and_then(|t| t.parse().ok()).unwrap();
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN\""), "{svg}");
    }

    #[test]
    fn a_file_brings_its_own_style() {
        let series = vec![Series { name: String::new(), points: vec![(2.0, 0.5)] }];
        let file = Chart { title: "t".into(), across: "n".into(), up: "e".into(), series }.file();
        assert!(file.starts_with("<svg ") && file.ends_with("</svg>\n"), "{file}");
        assert!(file.contains("<title>t</title><style>") && file.contains("xmlns="), "{file}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(chart(Vec::new()), "");
    }
}
